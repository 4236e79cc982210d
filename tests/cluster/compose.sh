#!/usr/bin/env bash
# docker-compose.yml as it is, with the images that images.sh and bases.sh made: the default, a real consensus node, telemetry.
# compose.sh [default|cometbft|telemetry]; all without a word.
. "$(dirname "$0")/lib.sh"
. "$HERE/load.sh"

LOAD=(127.0.0.1 8080 --grpc 127.0.0.1:9090)
URL=http://127.0.0.1:8080
compose() { (cd "$WALK/tree" && docker compose --progress plain "$@"); }
ask() { inside curl --silent --fail --show-error --max-time 10 "$URL$1"; }
height() { ask /blockchain/height | sed 's/^{"height":"\([0-9]*\)".*/\1/'; }
sealed() { ask /api/v2/networkhistory/segments | grep -q fromHeight; }

prepare() {
  "$HERE/network.sh" closed
  stop dockerd
  # Names outside of the containers have no name server.
  "$HERE/engine.sh" up --dns "$VETH.2"
  sources "$WALK/tree"
  (cd "$WALK/tree" && sh compose/secrets.sh)
  compose --profile telemetry down --volumes --remove-orphans >>"$WALK/log/compose.log" 2>&1
}

# begin EVENT OPTIONS...: brings it up and notes how long it took until all is healthy.
begin() {
  local event=$1 began=$SECONDS; shift
  compose up --wait --no-build "$@" >>"$WALK/log/compose.log" 2>&1 || die "$event: $WALK/log/compose.log"
  seen compose "$event" $((SECONDS - began)) "until all is healthy"
}

# A height, a list and a download, right after the start.
curls() {
  local download=$WALK/run/download.zip
  height >/dev/null || die "no height"
  ask '/api/v2/delegations?epochId=10&pagination.first=1&pretty' | grep -q edges || die "no delegations"
  inside curl --silent --fail --max-time 60 --output "$download" "$URL/api/v2/networkhistory/export?fromBlock=1&toBlock=5000&table=TABLE_TRADES" \
    || die "no download right after the start"
  python3 -c 'import sys, zipfile; sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)' "$download" || die "a damaged download"
  seen compose "a height, a list and a download" "" "download $(stat --format %s "$download") bytes"
}

# The command line in its image.
mesh() {
  docker run --rm --interactive --read-only --cap-drop ALL --tmpfs /tmp:mode=1777 --network tradewind_front \
    --volume "$WALK/run/key:/var/lib/mesh" tradewind/mesh:0.2.0 "$@"
}

# A signed transaction, until it is in a block.
submit() {
  rm -rf "$WALK/run/key" && install -d -o 65532 -g 65532 "$WALK/run/key"
  mesh tx keygen my.key >/dev/null
  mesh tx sign --key my.key --hex 0801 --url http://edge:8080 >"$WALK/run/tx.json"
  mesh tx submit --wait --url http://edge:8080 <"$WALK/run/tx.json" >>"$WALK/log/compose.log" 2>&1 || die "no transaction: $WALK/log/compose.log"
}

containers() { compose ps --quiet "$1"; }
scale() { compose up --wait --no-build --no-recreate --scale export=3 --scale query=2 --scale ingest=2; }
kill_one() { docker kill --signal KILL "$(containers "$1" | head -n 1)"; sleep 3; }
address_of() { docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}' "$1" | cut -d " " -f 1; }
ingest_addresses() { local one; for one in $(containers ingest); do address_of "$one"; done; }
# The replica of `ingest` that writes is killed, until the other one has taken over.
kill_writer() {
  local container address
  local -A replicas=()
  for container in $(containers ingest); do replicas[$(address_of "$container")]=$container; done
  address=$(writer "${!replicas[@]}") || return 1
  takeover "$address" ingest_addresses docker kill --signal KILL "${replicas[$address]}"
}
is_above() { [ "$(height)" -gt "$1" ]; }
# Services of which Jaeger has traces.
traced() { inside curl --silent http://127.0.0.1:16686/api/services | grep -oE '"(edge|query|export|node-info)"' | sort -u | wc -l; }
# Requests with a trace context.
all_traced() {
  local path wish="traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  for path in /blockchain/height "/api/v2/delegations?epochId=10" "/api/v2/networkhistory/export?fromBlock=1&toBlock=5000&table=TABLE_BLOCKS"; do
    inside curl --silent --output /dev/null --max-time 10 --header "$wish" "$URL$path"
  done
  sleep 2
  [ "$(traced)" = 4 ]
}

default() {
  local before after digest_before
  prepare
  begin "up"
  curls
  submit
  during compose "--scale export=3 --scale query=2 --scale ingest=2" scale
  during compose "a container of query killed" kill_one query
  during compose "a container of export killed" kill_one export
  during compose "the container of ingest that writes killed" kill_writer
  during compose "the consensus node restarted" compose restart node
  during compose "nats restarted" compose restart nats
  during compose "postgres restarted" compose restart postgres-rw
  before=$(height)
  digest_before=$(digest)
  compose down >>"$WALK/log/compose.log" 2>&1
  begin "up after down"
  after=$(height)
  [ "$after" -ge "$before" ] || die "the chain is gone: height $before, then $after"
  [ "$(digest)" = "$digest_before" ] || die "data is gone: height $before, then $after"
  seen compose "down, up: data is there" "" "height $before, then $after; the same file of the history"
  compose down --volumes >>"$WALK/log/compose.log" 2>&1
}
digest() { inside curl --silent --fail --head "$URL/api/v2/networkhistory/export?fromBlock=1&toBlock=5000&table=TABLE_TRADES" | sed -n 's/^repr-digest: //Ip'; }

after_hash() { compose logs node 2>&1 | sed -n 's/.*MESH_INGEST_AFTER_HASH=\([0-9a-f]*\).*/\1/p' | tail -n 1; }
has_after_hash() { [ -n "$(after_hash)" ]; }
cometbft() {
  local before
  prepare
  # Its chain continues the demo's past; `ingest` needs the hash of the last block of it.
  MESH_CONSENSUS=cometbft compose up --detach --no-build >>"$WALK/log/compose.log" 2>&1
  until_true 600 has_after_hash
  MESH_INGEST_AFTER_HASH=$(after_hash) MESH_CONSENSUS=cometbft begin "up with MESH_CONSENSUS=cometbft"
  before=$(height)
  until_true 60 is_above "$before"
  submit
  seen compose "cometbft: blocks come, a transaction is in one" "" "height $(height)"
  compose down --volumes >>"$WALK/log/compose.log" 2>&1
}

# Runs a query in Prometheus: the number of series, and the value of the first one. It has no published port.
prometheus() {
  inside curl --silent --fail --max-time 5 --get --data-urlencode "query=$1" \
    "http://$(address_of "$(compose --profile telemetry ps --quiet prometheus)"):9090/api/v1/query" \
    | python3 -c 'import json, sys; found = json.load(sys.stdin)["data"]["result"]; print(len(found), found[0]["value"][1] if found else 0)'
}
# All six services are scraped, and requests are counted.
all_scraped() {
  [[ $(prometheus 'count(count by (service_name) (target_info))') = "1 6" ]] \
    && [[ $(prometheus 'sum(http_server_request_duration_seconds_count) > 0') = "1 "* ]]
}
absent() { [[ $(prometheus 'ALERTS{alertname="MeshServiceAbsent", service_name="query", alertstate="firing"}') = "$1 "* ]]; }

# Only Grafana is left out: it is neither a Go module nor a package of Debian.
telemetry() {
  local services began
  prepare
  services=$(compose --profile telemetry config --services | grep -v grafana)
  # shellcheck disable=SC2086 # one word each
  OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 begin "up with telemetry" $services
  curls
  until_true 90 all_traced
  seen compose "telemetry: traces of edge, query, export and node-info in Jaeger" "" ""
  until_true 90 all_scraped
  seen compose "telemetry: metrics of the six services in Prometheus" "" "$(prometheus 'count({__name__=~".+"})' | cut -d " " -f 2) series"
  # The series of a stopped service are stale at the next scrape; its rule waits for two minutes.
  began=$SECONDS
  compose stop query >>"$WALK/log/compose.log" 2>&1
  until_true 240 absent 1
  seen compose "telemetry: query stopped, MeshServiceAbsent fires" $((SECONDS - began)) ""
  began=$SECONDS
  compose start query >>"$WALK/log/compose.log" 2>&1
  until_true 120 absent 0
  seen compose "telemetry: query started, MeshServiceAbsent ends" $((SECONDS - began)) ""
  compose --profile telemetry down --volumes >>"$WALK/log/compose.log" 2>&1
}

[ "${BASH_SOURCE[0]}" = "$0" ] || return 0
"$HERE/engine.sh" up
if [ $# -gt 0 ]; then "$1"; else default; cometbft; telemetry; fi
"$HERE/network.sh" refused | while read -r count; do seen compose "packets to addresses outside" "" "$count refused"; done
