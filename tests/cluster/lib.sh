# What every step of the walk shares: the work folder, messages, waiting, and the namespaces in which everything runs.
# Sourced, never run.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CHECKOUT=$(cd "$HERE/../.." && pwd)
# Everything that the walk makes lives below this folder.
WALK=$(realpath -m "${WALK:-$CHECKOUT/.walk}")
# shellcheck source=versions.sh
. "$HERE/versions.sh"
export PATH=$WALK/bin:$PATH
export DOCKER_HOST=unix://$WALK/run/docker.sock DOCKER_CONFIG=$WALK/docker-config KUBECONFIG=$WALK/kube/admin.conf
mkdir -p "$WALK"/{bin,log,pid,run,src}

# Addresses of the walk's own network namespace: its veth, pods, services, bridges of the container engine.
VETH=10.231.1 PODS=10.244.0.0/16 SERVICES=10.96.0.0/16 BRIDGES=10.245.0.0/16

say() { echo "$(date +%T) $*"; }
die() { say "$*" >&2; exit 1; }

# Waits until a command succeeds: until_true SECONDS COMMAND...
until_true() {
  local deadline=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || die "gave up waiting for: $*"
    sleep 0.2
  done
}

# A line of the table: seen STEP EVENT SECONDS REMARK [REPORT of load.py]
seen() { python3 "$HERE/table.py" note "$WALK/seen.jsonl" "$1" "$2" "${5:--}" "$3" "$4"; }

alive() { [ -s "$WALK/pid/$1" ] && kill -0 "$(cat "$WALK/pid/$1")" 2>/dev/null; }

# Runs a command in the walk's network and mount namespaces.
inside() { nsenter --target "$(cat "$WALK/pid/namespace")" --net --mount --wd="$PWD" -- "$@"; }

# Folders of all cgroup hierarchies: one (version 2) or several (version 1).
cgroups() { findmnt --noheadings --output TARGET --types cgroup,cgroup2; }

# Starts a daemon inside, in the cgroup /walk/daemons, unless it runs: daemon NAME COMMAND...
daemon() {
  local name=$1; shift
  ! alive "$name" || return 0
  (
    while read -r group; do echo "$BASHPID" >"$group/walk/daemons/cgroup.procs"; done < <(cgroups)
    exec setsid nsenter --target "$(cat "$WALK/pid/namespace")" --net --mount -- "$@"
  ) >>"$WALK/log/$name.log" 2>&1 </dev/null &
  echo $! >"$WALK/pid/$name"
}

# Ends a daemon and waits for it: stop NAME [SIGNAL]
stop() {
  ! alive "$1" || kill -s "${2:-TERM}" "$(cat "$WALK/pid/$1")"
  until_true 60 eval "! alive '$1'"
  rm -f "$WALK/pid/$1"
}

# The images of bases/Dockerfile, a line each: TARGET NAME
base_images() { awk '/^#: /{name = $2} /^FROM/ && name {print $4, name; name = ""}' "$HERE/bases/Dockerfile"; }

# sources FOLDER: copies the files of the checkout that git tracks, without untracked ones.
sources() {
  rm -rf "$1" && mkdir -p "$1"
  git -C "$CHECKOUT" ls-files -z --cached --others --exclude-standard | (cd "$CHECKOUT" && tar --null --files-from - --create) | tar --directory "$1" --extract
}
