# Load during an event. Sourced by the steps, which set LOAD to the arguments of load.py: host, port, options.
# shellcheck shell=bash disable=SC2153

# during STEP EVENT COMMAND...: runs a command under load and adds a line to the table, with the REMARK that the command sets.
during() {
  local step=$1 event=$2 end=$WALK/run/load-end begun=$WALK/run/load-begun report=$WALK/run/load.json load began took REMARK=
  shift 2
  rm -f "$end" "$begun"
  inside python3 "$HERE/load.py" "${LOAD[@]}" --until "$end" --ready "$begun" >"$report" 2>"$WALK/log/load.log" &
  load=$!
  # The load ends also if the command ends this script.
  trap 'touch "$WALK/run/load-end"' EXIT
  until_true 60 eval "[ -e '$begun' ] || ! kill -0 $load"
  sleep 4
  began=$SECONDS
  "$@" >>"$WALK/log/$step.log" 2>&1 || { touch "$end"; wait $load || true; die "$step: $event: the command failed: $WALK/log/$step.log"; }
  took=$((SECONDS - began))
  sleep "${SETTLE:-8}"
  touch "$end"
  wait $load || die "the load failed: $WALK/log/load.log"
  seen "$step" "$event" "$took" "$REMARK" "$report"
}

# committed ADDRESS [SECONDS]: the number of blocks that the replica of `ingest` at this address has committed since it started.
committed() {
  inside curl --silent --max-time "${2:-2}" "http://$1:9100/metrics" \
    | sed -n 's/^mesh_ingest_block_duration_seconds_count \([0-9]*\)$/\1/p' || true
}

# writer ADDRESS...: that of the replica of `ingest` whose number rises.
writer() {
  local address deadline=$((SECONDS + 30))
  local -A before=()
  for address in "$@"; do before[$address]=$(committed "$address"); done
  while [ $SECONDS -lt $deadline ]; do
    for address in "$@"; do
      if [ "$(committed "$address")" -gt "${before[$address]}" ]; then echo "$address"; return; fi
    done
    sleep 0.1
  done
  return 1
}

# takeover WRITER LIST COMMAND...: runs a command that stops the replica of `ingest` at the address WRITER. REMARK is the time from
# its start until another replica, or the restarted one, commits a block. LIST prints the addresses of all replicas: a new one
# may be faster than the one that was there.
takeover() {
  local writer=$1 list=$2 address addresses began listed=$SECONDS; shift 2
  local -A before=()
  addresses=$($list)
  for address in $addresses; do before[$address]=$(committed "$address"); done
  began=$(date +%s%N)
  "$@"
  until_true 60 is_taken_over
  REMARK="the next block is committed after $((($(date +%s%N) - began) / 1000000)) ms"
}
is_taken_over() {
  local address now
  for address in $addresses; do
    # A frozen one does not answer.
    now=$(committed "$address" 0.3)
    if [ "$address" = "$writer" ]; then
      [ "${now:-0}" = 0 ] || [ "$now" -ge "${before[$address]}" ] || return 0
    else
      [ "${now:-0}" -le "${before[$address]:-0}" ] || return 0
    fi
  done
  if [ $SECONDS -gt "$listed" ]; then listed=$SECONDS addresses=$($list); fi
  return 1
}
