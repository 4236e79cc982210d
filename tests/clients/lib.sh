# What every step shares: the work folder, messages, and the mesh that the clients ask. Sourced, never run.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CHECKOUT=$(cd "$HERE/../.." && pwd)
# Everything that the walk makes lives below this folder: tools, generated clients, the mesh's home, logs.
WORK=$(realpath -m "${WORK:-$CHECKOUT/.walk/clients}")
DRIVERS=$HERE/drivers
# shellcheck source=versions.sh
. "$HERE/versions.sh"
mkdir -p "$WORK"/{log,tools,out}

say() { echo "$(date +%T) $*"; }
die() { say "$*" >&2; exit 1; }

needs() {
  local program
  for program in "$@"; do command -v "$program" >/dev/null || die "there is no $program"; done
}

# Starts a mesh with the demo network on free ports and exports its addresses; an existing home is reused.
mesh_up() {
  : >"$WORK/log/mesh.log"
  (cd "$CHECKOUT" && exec cargo mesh up --port 0 --grpc-port 0 --home "$WORK/home") >>"$WORK/log/mesh.log" 2>&1 </dev/null &
  MESH=$!
  trap mesh_down EXIT
  until GATEWAY=$(sed -n 's/^ready \(http[^ ]*\) .*/\1/p' "$WORK/log/mesh.log") && [ -n "$GATEWAY" ]; do
    kill -0 "$MESH" 2>/dev/null || die "the mesh did not start: $WORK/log/mesh.log"
    sleep 1
  done
  export GATEWAY
  say "the mesh is ready at $GATEWAY"
}

mesh_down() {
  kill "$MESH" 2>/dev/null || true
  wait "$MESH" 2>/dev/null || true
}

# Exports what the drivers ask for: the document's own examples, and a time before which the ledger does not change.
values() {
  curl -sSf "$GATEWAY/openapi.json" -o "$WORK/openapi.json"
  python3 "$HERE/document.py" values "$WORK/openapi.json" >"$WORK/values.sh"
  # shellcheck source=/dev/null
  . "$WORK/values.sh"
  UNTIL=$(curl -sSf -D - -o "$WORK/log/limits.json" "$GATEWAY/api/v2/network/limits" | tr -d '\r' |
    sed -n 's/^x-block-timestamp: //Ip')
  export UNTIL
}

# Signs a transaction, one for each client, with a key of the walk's own: sign FILE
sign() {
  mesh() { (cd "$CHECKOUT" && cargo mesh "$@") 2>"$WORK/log/sign.log"; }
  [ -e "$WORK/key" ] || mesh tx keygen "$WORK/key" >/dev/null
  date +%s.%N >"$WORK/command"
  mesh tx sign --key "$WORK/key" --input "$WORK/command" --url "$GATEWAY" >"$1"
}
