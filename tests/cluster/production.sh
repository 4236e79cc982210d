#!/usr/bin/env bash
# overlays/production with its operators, under load: everything that befalls dev, a primary of PostgreSQL failed over, one NATS
# server of three gone, `export` scaled by its gauge. production.sh [up|events|scaling]; all without a word.
. "$(dirname "$0")/lib.sh"
. "$HERE/load.sh"
. "$HERE/events.sh"

OVERLAY=$WALK/tree/tests/cluster/manifests/production

secret() { kubectl_mesh create secret generic "$@" --dry-run=client --output yaml | kubectl_in apply --server-side --filename - >>"$WALK/log/production.log"; }

# The table of docs/operations/kubernetes.md.
secrets() {
  local user variables=() word
  kubectl_in apply --server-side --filename "$WALK/tree/k8s/base/namespace.yaml" >>"$WALK/log/production.log"
  for user in edge query tx-relay node-info export ingest decoder operator; do
    word=p$(openssl rand -hex 12)
    [ $user = operator ] || secret "bus-$user" "--from-literal=credentials=$user:$word"
    variables+=("--from-literal=NATS_$(tr a-z- A-Z_ <<<"$user")_PASSWORD=$word")
  done
  secret nats-passwords "${variables[@]}"
  for user in owner query node-info export ingest; do
    word=$user; [ $user != owner ] || word=mesh
    secret "postgres-$user" --type kubernetes.io/basic-auth "--from-literal=username=$word" "--from-literal=password=$(openssl rand -hex 12)"
    kubectl_mesh label --overwrite secret "postgres-$user" cnpg.io/reload=true >>"$WALK/log/production.log"
  done
}

up() {
  local began=$SECONDS
  sources "$WALK/tree"
  # Passwords that are there stay.
  inside kubectl --namespace tradewind get secret nats-passwords >/dev/null 2>&1 || secrets
  {
    kubectl_in apply --server-side --force-conflicts --kustomize "$OVERLAY"
    kubectl_mesh wait --for=condition=complete job/migrate --timeout=1h
    kubectl_mesh rollout status deployment --timeout=15m
    kubectl_mesh wait --for=condition=Ready cluster/postgres --timeout=10m
  } >>"$WALK/log/production.log"
  seen production "applied, everything ready" $((SECONDS - began)) "$(kubectl_in kustomize "$OVERLAY" | grep -c '^kind:') objects"
  address
  until_true 300 sealed
}

primary() { kubectl_mesh get cluster postgres --output 'jsonpath={.status.currentPrimary}'; }
# The primary's pod is deleted; another one becomes the primary.
fail_over() {
  local before
  before=$(primary)
  kubectl_mesh delete pod "$before" "$@"
  until_true 120 is_another_primary "$before"
  kubectl_mesh wait --for=condition=Ready cluster/postgres --timeout=5m
}
is_another_primary() { [ "$(primary)" != "$1" ]; }

sql() { kubectl_mesh exec "$(primary)" --container postgres -- psql --dbname=mesh --no-align --tuples-only --command "$1"; }

events() {
  address
  common_events production
  during production "primary of PostgreSQL deleted by force" fail_over --grace-period 0 --force
  during production "primary of PostgreSQL deleted" fail_over
  during production "one NATS server of three deleted" delete_nats
  during production "one NATS server of three deleted by force" delete_nats --grace-period 0 --force
  during production "NATS rolled" restart statefulset nats
  during production "every pod evicted" evict_all
  whole production
}
delete_nats() { kubectl_mesh delete pod nats-1 "$@"; kubectl_mesh rollout status statefulset/nats --timeout 5m; }

replicas() { kubectl_mesh get deployment export --output 'jsonpath={.spec.replicas} {.status.readyReplicas}'; }
are() { [ "$(replicas)" = "$1 $1" ]; }

# Target of the gauge per replica: small enough that two cores can serve reads while `export` scales.
TARGET=0.15
# Downloads a second that bring the sum over all replicas above three times that.
READERS=(--only download --workers 8 --rate 5)

# `export` from one replica to four and back by its gauge, during downloads and reads.
scaling() {
  local began end=$WALK/run/readers-end alone beside up down
  address
  LOAD+=(--only read)
  kubectl_mesh patch scaledobject export --type json --patch "[
    {\"op\": \"replace\", \"path\": \"/spec/minReplicaCount\", \"value\": 1},
    {\"op\": \"replace\", \"path\": \"/spec/triggers/0/metadata/targetValue\", \"value\": \"$TARGET\"}]" >>"$WALK/log/production.log"
  until_true 900 are 1
  rm -f "$end"
  inside python3 "$HERE/load.py" "${LOAD[0]}" 80 "${READERS[@]}" --until "$end" --seconds 1800 >"$WALK/run/readers.json" &
  began=$SECONDS
  until_true 300 are 4
  up=$((SECONDS - began))
  during production "reads during downloads, export at 4" sleep 60
  beside=$(p99)
  touch "$end"
  wait
  during production "reads alone, export at 4" sleep 60
  alone=$(p99)
  began=$SECONDS
  until_true 900 are 1
  down=$((SECONDS - began))
  seen production "KEDA: export 1 to 4 to 1, whole downloads" $up "up in $up s, down in $down s; p99 of reads $alone s alone, $beside s beside them" "$WALK/run/readers.json"
}
p99() { sed 's/.*"p99": \([0-9.]*\).*/\1/' "$WALK/run/load.json"; }

if [ $# -gt 0 ]; then "$1"; else up; events; scaling; fi
