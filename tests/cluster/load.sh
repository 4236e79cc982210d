# Load beside an event. Sourced by the steps; they set LOAD to the arguments of load.py: host, port, options.
# shellcheck shell=bash disable=SC2153

# during STEP EVENT COMMAND...: runs a command under load and adds a line to the table. REMARK goes with it.
during() {
  local step=$1 event=$2 end=$WALK/run/load-end begun=$WALK/run/load-begun report=$WALK/run/load.json load began took
  shift 2
  rm -f "$end" "$begun"
  inside python3 "$HERE/load.py" "${LOAD[@]}" --until "$end" --ready "$begun" >"$report" 2>"$WALK/log/load.log" &
  load=$!
  until_true 60 eval "[ -e '$begun' ] || ! kill -0 $load"
  sleep 4
  began=$SECONDS
  "$@" >>"$WALK/log/$step.log" 2>&1 || { touch "$end"; wait $load || true; die "$step: $event: the command failed: $WALK/log/$step.log"; }
  took=$((SECONDS - began))
  sleep "${SETTLE:-8}"
  touch "$end"
  wait $load || die "the load failed: $WALK/log/load.log"
  seen "$step" "$event" "$took" "${REMARK:-}" "$report"
}
