# The events of a mesh in the cluster, for any overlay. Sourced.
# shellcheck shell=bash disable=SC2153

kubectl_in() { inside kubectl "$@"; }
kubectl_mesh() { inside kubectl --namespace tradewind "$@"; }

# Where the load goes: the Service of the edge.
address() {
  local ip
  ip=$(kubectl_mesh get service edge --output 'jsonpath={.spec.clusterIP}')
  LOAD=("$ip" 80 --grpc "$ip:9090")
}
sealed() { inside curl --silent --fail --max-time 5 "http://${LOAD[0]}/api/v2/networkhistory/segments" | grep -q fromHeight; }

two_of_each() {
  local one
  for one in edge query export node-info tx-relay ingest; do
    [ "$(kubectl_mesh get deployment "$one" --output 'jsonpath={.status.readyReplicas}')" -ge 2 ] || return 1
  done
}
pod_of() { kubectl_mesh get pods --selector "app.kubernetes.io/name=$1" --field-selector status.phase=Running --output name | head -n 1; }

# delete WORKLOAD OPTIONS...: one of its pods, until the deployment is whole again.
delete() {
  local of=$1; shift
  kubectl_mesh delete --wait=false "$@" "$(pod_of "$of")"
  sleep 1
  kubectl_mesh rollout status "deployment/$of" --timeout 3m
}

# The replicas of `ingest`, a line each: ADDRESS POD.
ingest_pods() {
  kubectl_mesh get pods --selector app.kubernetes.io/name=ingest --field-selector status.phase=Running \
    --output 'jsonpath={range .items[*]}{.status.podIP} {.metadata.name}{"\n"}{end}'
}
are_two() { [ "$(ingest_pods | wc -l)" = 2 ]; }

ingest_addresses() { ingest_pods | cut -d " " -f 1; }

# to_writer COMMAND...: runs a command with the name of the writing pod of `ingest`, which WRITER then is, as its last argument,
# until another replica has taken over and the deployment is whole again.
to_writer() {
  local address pod
  local -A pods=()
  until_true 60 are_two
  while read -r address pod; do pods[$address]=$pod; done < <(ingest_pods)
  address=$(writer "${!pods[@]}") || return 1
  WRITER=${pods[$address]}
  takeover "$address" ingest_addresses "$@" "$WRITER"
  kubectl_mesh rollout status deployment/ingest --timeout 3m
}
delete_pod() { kubectl_mesh delete pod --wait=false "$@"; }

# signal NAME POD: sends a signal to the process of a pod of `ingest`.
signal() {
  local pid
  for pid in $(pgrep -x ingest); do
    ! grep --quiet --null-data "^HOSTNAME=$2\$" "/proc/$pid/environ" || kill -s "$1" "$pid"
  done
}
freeze_writer() { to_writer signal STOP; signal CONT "$WRITER"; }

# roll DEPLOYMENT...: restarted together.
roll() {
  local one
  for one in "$@"; do kubectl_mesh rollout restart "deployment/$one"; done
  for one in "$@"; do kubectl_mesh rollout status "deployment/$one" --timeout 5m; done
}

# restart KIND NAME: replaces its pods in turn.
restart() {
  kubectl_mesh rollout restart "$1/$2"
  kubectl_mesh rollout status "$1/$2" --timeout 10m
}

# Evicts every pod of the namespace, as a drain does: an eviction that a PodDisruptionBudget rejects is retried. There is one
# node, so evicted pods restart on it. The primary of CloudNativePG stays: its budget forbids the eviction, its operator moves it
# when the node is cordoned, and there is no other node.
evict_all() {
  local pods pod deadline=$((SECONDS + 300))
  mapfile -t pods < <(kubectl_mesh get pods --selector cnpg.io/instanceRole!=primary --field-selector status.phase=Running --output 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
  for pod in "${pods[@]}"; do
    until evict "$pod"; do [ $SECONDS -lt $deadline ] || return 1; sleep 1; done
  done
  kubectl_mesh rollout status deployment --timeout 5m
}
evict() {
  local said
  said=$(inside kubectl create --raw "/api/v1/namespaces/tradewind/pods/$1/eviction" --filename - 2>&1 \
    <<<"{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$1\", \"namespace\": \"tradewind\"}}") && return
  # It has gone already.
  [[ $said == *NotFound* || $said == *"not found"* ]]
}

# The release of docs/operations/kubernetes.md, word by word; the pods are new ones because of an annotation.
release() {
  local overlay=$WALK/tree/k8s/overlays/release
  mkdir -p "$overlay"
  cat >"$overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$(realpath --relative-to "$overlay" "$OVERLAY")]
patches:
  - target: {kind: Deployment}
    patch: |-
      - {op: add, path: /spec/template/metadata/annotations, value: {walk/release: "$(date +%s)"}}
YAML
  kubectl_mesh delete job migrate --ignore-not-found
  kubectl_in apply --server-side --kustomize "$overlay"
  kubectl_mesh wait --for=condition=complete job/migrate --timeout=1h
  kubectl_mesh rollout status deployment --timeout=15m
}

# whole STEP: each height is in the store once, and blocks are still written. The steps define `sql`.
whole() {
  local line
  until_true 60 blocks_follow
  line=$(sql "SELECT count(*) || ' blocks, ' || max(height) - min(height) + 1 - count(*) || ' missing' FROM blocks")
  [[ $line == *", 0 missing" ]] || die "$1: $line"
  seen "$1" "every height is stored once" "" "$line"
}
newest() { sql "SELECT max(height) FROM blocks"; }
blocks_follow() { local before; before=$(newest) && sleep 3 && [ "$(newest)" -gt "$before" ]; }

common_events() {
  local step=$1 one
  during "$step" "nothing" sleep 10
  for one in query export node-info tx-relay; do during "$step" "pod of $one deleted" delete "$one"; done
  during "$step" "pod of export deleted by force" delete export --grace-period 0 --force
  during "$step" "the writing pod of ingest deleted" to_writer delete_pod
  during "$step" "the writing pod of ingest deleted by force" to_writer delete_pod --grace-period 0 --force
  during "$step" "the writing process of ingest killed" to_writer signal KILL
  during "$step" "the writing process of ingest frozen" freeze_writer
  during "$step" "the consensus node restarted" restart statefulset node
  LOAD+=(--kept)
  during "$step" "pod of edge deleted, connections kept" delete edge
  during "$step" "edge rolled, connections kept" roll edge
  address
  during "$step" "edge rolled" roll edge
  during "$step" "the other five rolled together" roll query export node-info tx-relay ingest
  during "$step" "the documented release" release
}
