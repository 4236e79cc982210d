#!/usr/bin/env bash
# Builds the container engine, the cluster's programs and the operators from Go modules into $WALK/bin: some 40 minutes on
# two cores, once. Programs that exist in the version of versions.sh are skipped.
# engines.sh [NAME...]: all, or those named.
. "$(dirname "$0")/lib.sh"

export GOMODCACHE=$WALK/go/mod GOCACHE=$WALK/go/cache GOPATH=$WALK/go GOTOOLCHAIN=local
export GOFLAGS="-buildvcs=false -trimpath -modcacherw"
wanted=" $* "

# What is not built: Debian's packages, and Debian's docker command, unpacked only, as its package would start an engine.
packages=(debootstrap libseccomp-dev pkg-config gcc nftables iptables conntrack iproute2 containernetworking-plugins)
dpkg --status "${packages[@]}" >/dev/null 2>&1 || apt-get install -y --no-install-recommends "${packages[@]}" >"$WALK/log/packages.log"
if [ ! -x "$WALK/bin/docker" ]; then
  (cd "$WALK/src" && apt-get download docker.io >/dev/null 2>&1 && dpkg-deb --extract docker.io_*.deb docker && cp docker/usr/bin/docker "$WALK/bin/" && rm -rf docker docker.io_*.deb)
fi

# build NAME MODULE@VERSION [OUTPUT=]PACKAGE...: with TAGS, LDFLAGS and CGO (0 or 1) of the environment.
# A folder src/NAME beside this script, if there, holds the main package ".". With OWN=1 the build is done in a copy of the
# module, so that the replacements in its own go.mod hold; its main package, if it is ours, is ./walk there.
build() {
  local name=$1 module=$2 started=$SECONDS; shift 2
  local stamp=$WALK/bin/.$name folder=$WALK/src/$name log=$WALK/log/build-$name.log program output
  [[ $wanted == "  " || $wanted == *" $name "* ]] || return 0
  [ "$(cat "$stamp" 2>/dev/null)" != "$module" ] || return 0
  rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" && : >"$log"
  if [ -n "${OWN:-}" ]; then
    own "$module" >>"$log" 2>&1 || { say "FAILED to get $module: $log"; return 0; }
    [ ! -d "$HERE/src/$name" ] || cp -r "$HERE/src/$name" walk
  else
    [ ! -d "$HERE/src/$name" ] || cp -r "$HERE/src/$name"/* .
    go mod init "walk/$name" >>"$log" 2>&1
    if [ "$(type -t "prepare_$name")" = function ]; then "prepare_$name" >>"$log" 2>&1 || { say "FAILED to prepare $name: $log"; return 0; }; fi
    [ "$module" = std ] || nice -n 19 go get "$module" >>"$log" 2>&1 || { say "FAILED to get $module: $log"; return 0; }
  fi
  for program in "$@"; do
    case $program in *=*) output=${program%%=*} ;; *) output=${program##*/} ;; esac
    CGO_ENABLED=${CGO:-0} nice -n 19 go build -mod=mod -tags "${TAGS:-}" -ldflags "-s -w ${LDFLAGS:-}" \
      -o "$WALK/bin/$output" "${program#*=}" >>"$log" 2>&1 || { say "FAILED to build ${program#*=}: $log"; return 0; }
  done
  echo "$module" >"$stamp"
  say "built $name $module in $((SECONDS - started)) s"
}

# own MODULE@VERSION: a copy of a module's folder, into the current one.
own() {
  local from
  from=$(go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  [ -n "$from" ] && cp -r "$from/." . && chmod -R u+w .
}

# The collector's components are separate modules, all of one version.
# shellcheck disable=SC2317 # called by its name
prepare_otelcol() {
  local one
  for one in go.opentelemetry.io/collector/{exporter/debugexporter,exporter/otlphttpexporter,processor/batchprocessor} \
    go.opentelemetry.io/collector/{processor/memorylimiterprocessor,receiver/otlpreceiver,otelcol} \
    github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension; do
    go mod edit -require "$one@$OTELCOL"
  done
  go mod edit -replace go.opentelemetry.io/collector/internal/statusutil=./statusutil
}
# Kubernetes' module names its staging modules in version v0.0.0, which are v0.33 of modules of their own.
# shellcheck disable=SC2317 # called by its name
prepare_kubernetes() {
  local file staging
  file=$(go mod download -json "k8s.io/kubernetes@$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  while read -r staging; do
    go mod edit -replace "$staging=$staging@${KUBERNETES/v1./v0.}"
  done < <(sed -n 's/^\t\(k8s.io\/[^ ]*\) v0.0.0$/\1/p' "$file" | sort -u)
}

# One function, so that the file may change while this runs.
main() {
  local m
  CGO=1 TAGS=seccomp LDFLAGS="-X main.version=${RUNC#v}" build runc "github.com/opencontainers/runc@$RUNC" runc=github.com/opencontainers/runc
  m=github.com/containerd/containerd/v2
  TAGS="no_btrfs no_zfs no_devmapper" LDFLAGS="-X $m/version.Version=$CONTAINERD" build containerd "$m@$CONTAINERD" \
    containerd=$m/cmd/containerd containerd-shim-runc-v2=$m/cmd/containerd-shim-runc-v2 ctr=$m/cmd/ctr
  m=github.com/moby/moby/v2
  CGO=1 TAGS="exclude_graphdriver_btrfs exclude_graphdriver_zfs exclude_disk_quota" LDFLAGS="-X $m/dockerversion.Version=${MOBY#v}" \
    build moby "$m@$MOBY" dockerd=$m/cmd/dockerd docker-proxy=$m/cmd/docker-proxy
  m=github.com/docker/compose/v2
  LDFLAGS="-X $m/internal.Version=$COMPOSE" build compose "$m@$COMPOSE" cli-plugins/docker-compose=$m/cmd
  m=github.com/docker/buildx
  LDFLAGS="-X $m/version.Version=$BUILDX" build buildx "$m@$BUILDX" cli-plugins/docker-buildx=$m/cmd/buildx
  m=github.com/nats-io/nats-server/v2
  build nats "$m@$NATS_SERVER" nats-server=$m
  m=go.etcd.io/etcd/server/v3
  build etcd "$m@$ETCD" etcd=$m
  m=k8s.io/component-base/version
  LDFLAGS="-X $m.gitVersion=$KUBERNETES -X $m.gitMajor=1 -X $m.gitMinor=33 -X $m.gitTreeState=clean" \
    build kubernetes "k8s.io/kubernetes@$KUBERNETES" k8s.io/kubernetes/cmd/{kube-apiserver,kubectl,kube-controller-manager,kube-scheduler,kubelet,kube-proxy}
  build pause std pause=.
  build coredns "github.com/coredns/coredns@$COREDNS" coredns=.
  m=sigs.k8s.io/metrics-server
  build metrics-server "$m@$METRICS_SERVER" $m/cmd/metrics-server

  # What the manifests name as images and operators.
  m=github.com/cloudnative-pg/cloudnative-pg
  LDFLAGS="-X $m/pkg/versions.buildVersion=${CLOUDNATIVE_PG#v}" build cloudnative-pg "$m@$CLOUDNATIVE_PG" manager=$m/cmd/manager
  build otelcol "go.opentelemetry.io/collector/otelcol@$OTELCOL" otelcol=.
  OWN=1 build cert-manager "github.com/cert-manager/cert-manager@$CERT_MANAGER" cert-manager=./walk
  OWN=1 build keda "github.com/kedacore/keda/v2@$KEDA" keda=./cmd/operator keda-adapter=./cmd/adapter
  OWN=1 build versitygw "github.com/versity/versitygw@$VERSITYGW" ./cmd/versitygw
  m=github.com/prometheus-operator/prometheus-operator
  build prometheus-operator "$m@$PROMETHEUS_OPERATOR" prometheus-operator=$m/cmd/operator $m/cmd/prometheus-config-reloader
  OWN=1 build prometheus "github.com/prometheus/prometheus@$PROMETHEUS" ./cmd/prometheus ./cmd/promtool
  OWN=1 build jaeger "github.com/jaegertracing/jaeger@$JAEGER" ./cmd/jaeger
}
# One line: nothing is read of this file any more when it returns.
main; exit
