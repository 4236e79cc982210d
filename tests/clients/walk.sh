#!/usr/bin/env bash
# Generates the clients from a gateway's document, compiles them, calls every operation with them, and prints a table.
# walk.sh [CLIENT...]: python go typescript-fetch java oapi-codegen openapi-typescript openapi-python-client, and lint, which
# runs validators on the document. `walk.sh clean` removes the work folder.
. "$(dirname "$0")/lib.sh"
CLIENTS=(python go typescript-fetch java oapi-codegen openapi-typescript openapi-python-client)
ROWS=()

# One step, in its own process, with a log: step CLIENT generate|compile|call|downloads
step() { "$HERE/step.sh" "$@" >"$WORK/log/$1.$2.log" 2>&1 </dev/null; }

# A row of the table: row CLIENT GENERATED COMPILED CALLED DOWNLOADS
row() { ROWS+=("| $1 | $2 | $3 | $4 | $5 |"); }

walk() {
  local client=$1 called="" left
  rm -rf "$WORK/out/$client" "$WORK/out/$client.files"
  export OUT=$WORK/out/$client.files TX=$WORK/out/$client.tx.json
  mkdir -p "$WORK/out/$client" "$OUT"
  say "$client: generating"
  step "$client" generate || { row "$client" failed "" "" ""; return; }
  say "$client: compiling"
  step "$client" compile || { row "$client" yes failed "" ""; return; }
  say "$client: calling"
  sign "$TX" || { row "$client" yes yes "no transaction" ""; return; }
  step "$client" call || called="failed "
  left=$(python3 "$HERE/document.py" missing "$WORK/openapi.json" "$WORK/log/$client.call.log")
  called+="$(grep '^called ' "$WORK/log/$client.call.log" | sort -u | wc -l) operations${left:+, not $left}"
  step "$client" downloads || { row "$client" yes yes "$called" failed; return; }
  row "$client" yes yes "$called" whole
}

main() {
  local client
  [ "${1:-}" != clean ] || { rm -rf "$WORK"; exit; }
  needs cargo curl go java javac mvn node npm python3 unzip
  [ $# -gt 0 ] || set -- "${CLIENTS[@]}" lint
  for client in "$@"; do
    [[ " ${CLIENTS[*]} lint " == *" $client "* ]] || die "there is no client $client"
  done
  mesh_up
  values
  for client in "$@"; do
    case $client in
      lint) "$HERE/lint.sh" || row lint failed "" "" "" ;;
      *) walk "$client" ;;
    esac
  done
  {
    echo "| Client | Generated | Compiled | Called | Downloads |"
    echo "|---|---|---|---|---|"
    [ ${#ROWS[@]} = 0 ] || printf '%s\n' "${ROWS[@]}"
  } | tee "$WORK/table.md"
  ! grep -Eq 'failed|, not |no transaction' "$WORK/table.md" || die "not everything passed: the logs are in $WORK/log"
}
main "$@"; exit
