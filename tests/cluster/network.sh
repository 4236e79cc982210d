#!/usr/bin/env bash
# The namespaces in which everything of the walk runs, and what may leave them.
# network.sh up      makes a network and a mount namespace, and cgroups /walk
# network.sh open    lets builds reach the package registries
# network.sh closed  refuses, and counts, every packet to an address that is not the walk's own; before the first request
# network.sh refused prints the number of refused packets, and their destinations on standard error
# network.sh down    ends every process of the walk; with it go its namespaces, mounts and rules
. "$(dirname "$0")/lib.sh"

# Whether the namespace is another one than ours.
is_apart() { [ "$(readlink "/proc/$(cat "$WALK/pid/namespace")/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; }

up() {
  ! alive namespace || return 0
  [ ! -e /sys/class/net/walk0 ] || die "another walk runs on this machine"
  local group folder
  modprobe --all br_netfilter overlay 2>/dev/null || true
  while read -r group; do
    mkdir -p "$group/walk/daemons"
    # Version 1 hands out processors and memory nodes by hand, version 2 controllers.
    for folder in "$group/walk" "$group/walk/daemons"; do
      if [ -e "$folder/cpuset.cpus" ]; then
        cat "$group/cpuset.cpus" >"$folder/cpuset.cpus"; cat "$group/cpuset.mems" >"$folder/cpuset.mems"
      fi
    done
    if [ -e "$group/cgroup.subtree_control" ] && [ -s "$group/cgroup.controllers" ]; then
      for folder in "$group" "$group/walk"; do
        echo "+cpu +cpuset +io +memory +pids" >"$folder/cgroup.subtree_control"
      done
    fi
  done < <(cgroups)
  (
    while read -r group; do echo "$BASHPID" >"$group/walk/daemons/cgroup.procs"; done < <(cgroups)
    exec setsid unshare --net --mount --propagation private sleep infinity
  ) </dev/null >/dev/null 2>&1 &
  echo $! >"$WALK/pid/namespace"
  until_true 10 is_apart
  # Folders that programs insist on are the work folder's own there.
  for folder in /run/containerd /run/netns /run/docker /var/lib/cni /var/lib/kubelet /var/log/pods /var/log/containers; do
    mkdir -p "$WALK/host$folder"
    [ -d "$folder" ] || { mkdir -p "$folder"; echo "$folder" >>"$WALK/pid/made"; }
    inside mount --bind "$WALK/host$folder" "$folder"
  done
  inside mount --make-rshared /
  ip link add walk0 type veth peer name walk1 netns "$(cat "$WALK/pid/namespace")"
  ip addr add "$VETH.1/30" dev walk0
  ip link set walk0 up
  inside sh -c "
    sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=1
    sysctl -qw net.bridge.bridge-nf-call-iptables=1 || true
    ip link set lo up; ip addr add $VETH.2/30 dev walk1; ip link set walk1 up; ip route add default via $VETH.1"
}

open() {
  inside nft delete table inet walk 2>/dev/null || true
  nft list table ip walk >/dev/null 2>&1 && return 0
  sysctl -n net.ipv4.ip_forward >"$WALK/pid/ip_forward"
  sysctl -qw net.ipv4.ip_forward=1
  nft -f - <<RULES
table ip walk {
  chain leave { type nat hook postrouting priority srcnat; ip saddr $VETH.0/30 oifname != "walk0" masquerade; }
}
RULES
}

# Takes back what open did to the machine.
shut() {
  nft delete table ip walk 2>/dev/null || true
  [ ! -e "$WALK/pid/ip_forward" ] || sysctl -qw "net.ipv4.ip_forward=$(cat "$WALK/pid/ip_forward")"
  rm -f "$WALK/pid/ip_forward"
}

closed() {
  shut
  inside nft list table inet walk >/dev/null 2>&1 && return 0
  # After the translation of service addresses, so that the real destination of a packet is checked.
  inside nft -f - <<RULES
table inet walk {
  set own { type ipv4_addr; flags interval; elements = { 127.0.0.0/8, $VETH.0/30, $PODS, $SERVICES, $BRIDGES, 224.0.0.0/4 } }
  counter refused { }
  # The destinations of refused packets.
  set strangers { type ipv4_addr; flags dynamic; size 64; }
  # IPv6 is off, except for neighbour discovery on one link.
  # An address of a service without endpoints is not translated, and would be routed out, too.
  chain out {
    type filter hook output priority 10
    ip daddr != @own add @strangers { ip daddr } counter name refused reject
    ip6 daddr != { ::1, fe80::/10, ff00::/8 } counter name refused reject
    ip daddr $SERVICES reject
  }
  chain through {
    type filter hook forward priority 10
    ip daddr != @own add @strangers { ip daddr } counter name refused reject
    ip6 daddr != { fe80::/10, ff00::/8 } counter name refused reject
    ip daddr $SERVICES reject
  }
}
RULES
}

refused() {
  inside nft list counter inet walk refused | sed -n 's/.*packets \([0-9]*\).*/\1/p'
  inside nft list set inet walk strangers | sed -n 's/.*elements = {\(.*\)}/\1/p' >&2
}

down() {
  local group folder pid
  shut
  # All processes of the walk and their children are below /walk.
  for _ in $(seq 50); do
    local left=0
    while read -r group; do
      [ -d "$group/walk" ] || continue
      while read -r pid; do left=1; kill -KILL "$pid" 2>/dev/null || true; done \
        < <(find "$group/walk" -name cgroup.procs -exec cat {} + | sort -u)
    done < <(cgroups)
    [ $left = 1 ] || break
    sleep 0.2
  done
  while read -r group; do
    [ ! -d "$group/walk" ] || find "$group/walk" -depth -type d -exec rmdir {} +
  done < <(cgroups)
  ip link delete walk0 2>/dev/null || true
  [ ! -e "$WALK/pid/made" ] || while read -r folder; do rmdir "$folder" 2>/dev/null || true; done <"$WALK/pid/made"
  rm -rf "$WALK"/{pid,run,host}
}

"$1"
