#!/usr/bin/env bash
# The operators that overlays/production asks for, by their own manifests with the images that bases.sh made; a store that speaks
# S3; Jaeger and a Prometheus in `monitoring`. operators.sh [NAME...] of the functions below; all without one.
. "$(dirname "$0")/lib.sh"
. "$HERE/events.sh"

module() { echo "$WALK/go/mod/$1"; }
# Their manifests name images of registries.
ours() { sed -E -e 's#image(PullPolicy)?: Always#image\1: IfNotPresent#' "$@"; }
apply() { kubectl_in apply --server-side --force-conflicts --filename - >>"$WALK/log/operators.log"; }
namespace() { kubectl_in create namespace "$1" --dry-run=client --output yaml | apply; }
ready() { kubectl_in --namespace "$1" rollout status deployment --timeout 5m >>"$WALK/log/operators.log"; }

cloudnative_pg() {
  ours -e 's#ghcr.io/cloudnative-pg/cloudnative-pg:[0-9a-z.-]+#walk/cloudnative-pg:1#' \
    "$(module "github.com/cloudnative-pg/cloudnative-pg@$CLOUDNATIVE_PG")/releases/cnpg-${CLOUDNATIVE_PG#v}.yaml" | apply
  ready cnpg-system
}

# Its controllers without its webhook, which checks and defaults what the manifests here write out.
cert_manager() {
  namespace cert-manager
  for file in "$WALK"/src/cert-manager/deploy/crds/*.yaml; do echo ---; cat "$file"; done | apply
  apply <"$HERE/manifests/cert-manager.yaml"
  ready cert-manager
}

keda() {
  inside kubectl kustomize "$WALK/src/keda/config/minimal" \
    | ours -e 's#ghcr.io/kedacore/keda(-metrics-apiserver)?:[0-9a-z.-]+#walk/keda:1#' | apply
  ready keda
}

prometheus_operator() {
  namespace monitoring
  inside kubectl kustomize "$(module "github.com/prometheus-operator/prometheus-operator@$PROMETHEUS_OPERATOR")" \
    | ours -e 's#quay.io/prometheus-operator/prometheus-operator:v[0-9.]+#walk/prometheus-operator:1#' \
      -e 's#quay.io/prometheus-operator/prometheus-config-reloader:v[0-9.]+#walk/config-reloader:1#' \
      -e 's#namespace: default#namespace: monitoring#' | apply
  apply <"$HERE/manifests/monitoring.yaml"
  ready monitoring
}

s3() {
  apply <"$HERE/manifests/s3.yaml"
  ready s3
  until_true 60 bucket
}
# The bucket of the production overlay.
bucket() {
  inside curl --silent --fail --max-time 5 --request PUT --user walk:walk-secret --aws-sigv4 aws:amz:us-east-1:s3 \
    --header "x-amz-content-sha256: $(sha256sum </dev/null | cut -d " " -f 1)" \
    "http://$(kubectl_in --namespace s3 get service s3 --output 'jsonpath={.spec.clusterIP}'):7070/tradewind-history"
}

if [ $# -eq 0 ]; then set -- s3 cert_manager prometheus_operator keda cloudnative_pg; fi
for one in "$@"; do "$one"; say "$one is there"; done
