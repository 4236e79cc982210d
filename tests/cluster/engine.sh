#!/usr/bin/env bash
# The container engine: containerd for all, dockerd for images and compose.
# engine.sh up [DOCKERD-OPTION...]; engine.sh down
. "$(dirname "$0")/lib.sh"

up() {
  "$HERE/network.sh" up
  mkdir -p "$WALK"/{docker-config,kube/cni}
  ln -sfn "$WALK/bin/cli-plugins" "$DOCKER_CONFIG/cli-plugins"
  cat >"$WALK/containerd.toml" <<TOML
version = 3
root = "$WALK/containerd/root"
state = "$WALK/run/containerd"
[grpc]
address = "$WALK/run/containerd.sock"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "registry.k8s.io/pause:3.10"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "$WALK/kube/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "$WALK/bin/runc"
TOML
  cat >"$WALK/dockerd.json" <<JSON
{
  "data-root": "$WALK/docker", "exec-root": "$WALK/run/docker", "pidfile": "$WALK/run/docker.pid",
  "hosts": ["unix://$WALK/run/docker.sock"], "containerd": "$WALK/run/containerd.sock",
  "cgroup-parent": "/walk/docker", "exec-opts": ["native.cgroupdriver=cgroupfs"],
  "userland-proxy-path": "$WALK/bin/docker-proxy", "shutdown-timeout": 10, "ip6tables": false,
  "builder": {"gc": {"enabled": false}},
  "bip": "10.245.0.1/24", "default-address-pools": [{"base": "$BRIDGES", "size": 24}]
}
JSON
  daemon containerd containerd --config "$WALK/containerd.toml"
  until_true 60 inside ctr --address "$WALK/run/containerd.sock" version
  # Debian's docker command is an older one.
  export DOCKER_MIN_API_VERSION=1.24
  daemon dockerd dockerd --config-file "$WALK/dockerd.json" "$@"
  until_true 120 docker version
}

down() { stop dockerd; stop containerd; }

"$@"
