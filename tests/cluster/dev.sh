#!/usr/bin/env bash
# `overlays/dev` on the cluster, under load: pods deleted, everything rolled, evicted and restarted, the documented release.
. "$(dirname "$0")/lib.sh"
. "$HERE/load.sh"
. "$HERE/events.sh"

OVERLAY=$WALK/tree/k8s/overlays/dev

up() {
  local began=$SECONDS
  sources
  kubectl_in apply --server-side --force-conflicts --kustomize "$OVERLAY" >>"$WALK/log/dev.log"
  kubectl_mesh wait --for=condition=available deployment --all --timeout=10m >>"$WALK/log/dev.log"
  seen dev "applied, every deployment available" $((SECONDS - began)) "$(kubectl_in kustomize "$OVERLAY" | grep -c '^kind:') objects"
  # Two of each, as in production: on two cores they have room.
  for one in edge query export node-info tx-relay; do
    kubectl_mesh patch hpa "$one" --type merge --patch '{"spec": {"minReplicas": 2}}' >>"$WALK/log/dev.log"
  done
  until_true 120 two_of_each
  seen dev "two replicas of each service ready" "" "$(kubectl_mesh get pods --field-selector status.phase=Pending --no-headers 2>/dev/null | wc -l) pending"
  address
  until_true 120 sealed
}

events() {
  address
  common_events dev
  during dev "postgres restarted" restart statefulset postgres
  during dev "nats restarted" restart statefulset nats
}

if [ $# -gt 0 ]; then "$1"; else up; events; fi
