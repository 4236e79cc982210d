#!/usr/bin/env bash
# `overlays/dev` on the cluster, under load: pods deleted, everything rolled, evicted and restarted, the documented release.
. "$(dirname "$0")/lib.sh"
. "$HERE/load.sh"
. "$HERE/events.sh"

PLAIN=$WALK/tree/k8s/overlays/dev
OVERLAY=$WALK/tree/tests/cluster/manifests/dev

# begin FOLDER EVENT: applied, and every deployment available.
begin() {
  local began=$SECONDS
  kubectl_in apply --server-side --force-conflicts --kustomize "$1" >>"$WALK/log/dev.log"
  kubectl_mesh wait --for=condition=available deployment --all --timeout=10m >>"$WALK/log/dev.log"
  [ "$1" = "$PLAIN" ] || until_true 120 two_of_each
  seen dev "$2" $((SECONDS - began)) "$(kubectl_mesh get pods --no-headers | wc -l) pods, $(pending) of them pending"
}
pending() { kubectl_mesh get pods --field-selector status.phase=Pending --no-headers 2>/dev/null | wc -l; }

up() {
  sources "$WALK/tree"
  begin "$PLAIN" "applied, every deployment available"
  begin "$OVERLAY" "two replicas of each service ready"
  address
  until_true 120 sealed
}

# shellcheck disable=SC2016 # the pod's shell reads the password
sql() {
  kubectl_mesh exec postgres-0 -- sh -c 'PGPASSWORD=$(cat /run/secrets/postgres-owner) exec psql --username=mesh \
    --dbname=mesh --no-align --tuples-only --command "$0"' "$1"
}

events() {
  address
  common_events dev
  during dev "postgres restarted" restart statefulset postgres
  during dev "nats restarted" restart statefulset nats
  during dev "every pod evicted" evict_all
  whole dev
}

if [ $# -gt 0 ]; then "$1"; else up; events; fi
