#!/usr/bin/env bash
# A Kubernetes of one node inside the walk's namespaces: cluster.sh up, cluster.sh down (stops it and forgets its state).
. "$(dirname "$0")/lib.sh"

NODE=walk
PKI=$WALK/kube/pki

# certificate NAME SUBJECT [SUBJECT-ALTERNATIVE-NAMES]: a key and a certificate of the cluster's authority.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$PKI/$1.key" -out "$PKI/$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 30 -out "$PKI/$1.crt" \
    -extfile <(echo "extendedKeyUsage=serverAuth,clientAuth"; [ $# -lt 3 ] || echo "subjectAltName=$3") 2>/dev/null
}

# kubeconfig NAME CERTIFICATE
kubeconfig() {
  local file=$WALK/kube/$1.conf
  kubectl config --kubeconfig "$file" set-cluster walk --server "https://$VETH.2:6443" --certificate-authority "$PKI/ca.crt" >/dev/null
  kubectl config --kubeconfig "$file" set-credentials "$1" --client-certificate "$PKI/$2.crt" --client-key "$PKI/$2.key" >/dev/null
  kubectl config --kubeconfig "$file" set-context walk --cluster walk --user "$1" >/dev/null
  kubectl config --kubeconfig "$file" use-context walk >/dev/null
}

authority() {
  [ ! -e "$PKI/ca.crt" ] || return 0
  mkdir -p "$PKI"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=walk -keyout "$PKI/ca.key" -out "$PKI/ca.crt" 2>/dev/null
  openssl genrsa -out "$PKI/accounts.key" 2048 2>/dev/null
  certificate apiserver /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:10.96.0.1,IP:$VETH.2,IP:127.0.0.1"
  certificate admin /O=system:masters/CN=admin
  certificate controllers /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate kubelet "/O=system:nodes/CN=system:node:$NODE" "DNS:$NODE,IP:$VETH.2"
  certificate proxy /CN=system:kube-proxy
  certificate front /CN=front
  kubeconfig admin admin
  kubeconfig controllers controllers
  kubeconfig scheduler scheduler
  kubeconfig kubelet kubelet
  kubeconfig proxy proxy
}

# The plug-ins of Debian's package: a bridge for the pods.
network() {
  cat >"$WALK/kube/cni/10-walk.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "walk", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$PODS"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/var/lib/cni/networks"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
}

control_plane() {
  local local_only="--bind-address 127.0.0.1 --leader-elect=false --v 1"
  daemon etcd etcd --data-dir "$WALK/kube/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --log-level warn --unsafe-no-fsync
  daemon apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --advertise-address "$VETH.2" --secure-port 6443 \
    --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" --client-ca-file "$PKI/ca.crt" \
    --service-account-key-file "$PKI/accounts.key" --service-account-signing-key-file "$PKI/accounts.key" \
    --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range "$SERVICES" --allow-privileged \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --kubelet-preferred-address-types InternalIP \
    --kubelet-client-certificate "$PKI/admin.crt" --kubelet-client-key "$PKI/admin.key" --kubelet-certificate-authority "$PKI/ca.crt" \
    --requestheader-client-ca-file "$PKI/ca.crt" --requestheader-allowed-names front --proxy-client-cert-file "$PKI/front.crt" \
    --proxy-client-key-file "$PKI/front.key" --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- --enable-aggregator-routing --cert-dir "$WALK/kube/certs" --v 1
  until_true 120 inside kubectl get --raw /readyz
  # shellcheck disable=SC2086 # several options
  daemon controllers kube-controller-manager --kubeconfig "$WALK/kube/controllers.conf" --authentication-kubeconfig "$WALK/kube/controllers.conf" \
    --authorization-kubeconfig "$WALK/kube/controllers.conf" --service-account-private-key-file "$PKI/accounts.key" --root-ca-file "$PKI/ca.crt" \
    --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key" --use-service-account-credentials \
    --service-cluster-ip-range "$SERVICES" --cert-dir "$WALK/kube/certs" $local_only
  # shellcheck disable=SC2086
  daemon scheduler kube-scheduler --kubeconfig "$WALK/kube/scheduler.conf" --authentication-kubeconfig "$WALK/kube/scheduler.conf" \
    --authorization-kubeconfig "$WALK/kube/scheduler.conf" --cert-dir "$WALK/kube/certs" $local_only
}

node() {
  cat >"$WALK/kube/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /walk
containerRuntimeEndpoint: unix://$WALK/run/containerd.sock
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: $WALK/kube/resolv.conf
failSwapOn: false
authentication: {x509: {clientCAFile: $PKI/ca.crt}, anonymous: {enabled: false}, webhook: {enabled: true}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
address: $VETH.2
oomScoreAdj: 0
volumePluginDir: $WALK/kube/plugins
evictionHard: {memory.available: 200Mi, nodefs.available: 1Gi, imagefs.available: 1Gi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serializeImagePulls: false
YAML
  # Names outside of the cluster have no name server.
  echo "nameserver 127.0.0.1" >"$WALK/kube/resolv.conf"
  daemon kubelet kubelet --config "$WALK/kube/kubelet.yaml" --kubeconfig "$WALK/kube/kubelet.conf" --hostname-override "$NODE" \
    --node-ip "$VETH.2" --root-dir /var/lib/kubelet --v 2
  daemon proxy kube-proxy --kubeconfig "$WALK/kube/proxy.conf" --hostname-override "$NODE" --cluster-cidr "$PODS" --proxy-mode iptables \
    --conntrack-max-per-core 0 --conntrack-min 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0 --v 1
}

# Persistent volumes: folders of the work folder, under a default class.
volumes() {
  local number
  for number in $(seq 14); do
    mkdir -p "$WALK/kube/volumes/$number"
    cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: walk-$number}
spec:
  storageClassName: walk
  capacity: {storage: 500Gi}
  accessModes: [ReadWriteOnce, ReadWriteMany]
  persistentVolumeReclaimPolicy: Retain
  local: {path: $WALK/kube/volumes/$number}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$NODE]}]}]}}
YAML
  done | inside kubectl apply --filename - >>"$WALK/log/cluster.log"
}

# load_images IMAGE...: from the container engine to the kubelet.
load_images() {
  local image
  for image in "$@"; do
    docker image inspect "$image" >/dev/null 2>&1 || { say "there is no image $image"; continue; }
    docker save "$image" | inside ctr --address "$WALK/run/containerd.sock" --namespace k8s.io images import - >>"$WALK/log/cluster.log" 2>&1
  done
}

up() {
  "$HERE/engine.sh" up
  authority
  network
  control_plane
  # shellcheck disable=SC2046 # one word each
  load_images $(base_images | awk '$1 != "rust" && $1 != "golang" {print $2}') \
    tradewind/{edge,query,tx-relay,node-info,export,ingest,mesh,node}:0.2.0
  node
  until_true 120 inside kubectl get node "$NODE"
  inside kubectl wait --for condition=Ready "node/$NODE" --timeout 2m >>"$WALK/log/cluster.log"
  volumes
  inside kubectl apply --server-side --filename "$HERE/manifests/system.yaml" >>"$WALK/log/cluster.log"
  inside kubectl --namespace kube-system rollout status deployment --timeout 3m >>"$WALK/log/cluster.log"
  say "the cluster is ready"
}

down() {
  # The API server would wait for its watchers.
  for one in kubelet proxy scheduler controllers apiserver etcd; do stop $one KILL; done
  "$HERE/network.sh" down
  rm -rf "$WALK"/kube
}

"$@"
