#!/usr/bin/env bash
# The whole walk, step by step, and its table at the end. It stops what it started; what it built stays in the work folder.
# walk.sh [STEP...]: engines bases images compose dev production. `walk.sh clean` removes the work folder, too.
# shellcheck disable=SC2317 # steps are called by their names
. "$(dirname "$0")/lib.sh"

engines() { "$HERE/engines.sh"; }
bases() { "$HERE/bases.sh"; }
images() { "$HERE/images.sh"; }
compose() { "$HERE/compose.sh"; }
closed() { "$HERE/network.sh" up; "$HERE/network.sh" closed; }
refused() { seen "$1" "packets to addresses outside" "" "$("$HERE/network.sh" refused) refused"; }
# Each overlay gets a new cluster; the remains of an earlier one are removed first.
cluster() { "$HERE/cluster.sh" down; closed; "$HERE/cluster.sh" up; }
dev() { cluster; "$HERE/dev.sh"; refused dev; "$HERE/cluster.sh" down; }
production() { cluster; "$HERE/operators.sh"; "$HERE/production.sh"; refused production; "$HERE/cluster.sh" down; }
clean() { "$HERE/network.sh" down; rm -rf "$WALK"; }

main() {
  local step
  [ "$(id -u)" = 0 ] || die "only root may make namespaces"
  [ "${1:-}" != clean ] || { clean; exit; }
  trap '"$HERE/network.sh" down' EXIT
  [ $# -gt 0 ] || set -- engines bases images compose dev production
  for step in "$@"; do "$step"; done
  python3 "$HERE/table.py" print "$WALK/seen.jsonl" | tee "$WALK/table.md"
}
main "$@"; exit
