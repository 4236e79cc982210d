#!/usr/bin/env bash
# The product's images by its own Dockerfile: from an empty cache, again after one source file was touched, and each started as
# the manifests start it. images.sh [build|again|start]; all without a word.
. "$(dirname "$0")/lib.sh"

TARGETS=(edge query tx-relay node-info export ingest mesh node)

# build_all LOG: every target; the layers are shared.
build_all() {
  local target commit
  commit=$(git -C "$CHECKOUT" rev-parse HEAD)
  for target in "${TARGETS[@]}"; do
    docker buildx build --load --progress plain --network host --build-arg "MESH_COMMIT=$commit" --target "$target" \
      --tag "tradewind/$target:0.2.0" "$WALK/images" >>"$1" 2>&1 || die "the image of $target cannot be built: $1"
  done
}

# Crates that a build's log says were compiled: all of them, and those of outside.
compiled() { grep -o ' Compiling [^ ]* v[^ ]*\( (.*)\)\?' "$1" | sort; }
foreign() { compiled "$1" | grep -vc '(' || true; }

# Size of an image's files, megabytes.
unpacked() {
  local container
  container=$(docker create "tradewind/$1:0.2.0")
  docker export "$container" | wc -c | awk '{printf "%.0f", $1 / 1e6}'
  docker rm "$container" >/dev/null
}

build() {
  local began=$SECONDS log=$WALK/log/images.log twice
  "$HERE/network.sh" open
  # compose.sh leaves an engine that has no name server.
  stop dockerd
  "$HERE/engine.sh" up
  docker buildx prune --all --force >/dev/null
  sources "$WALK/images"
  rm -f "$log"
  build_all "$log"
  twice=$(compiled "$log" | grep -v '(' | uniq -d | wc -l)
  seen images "built from an empty cache" $((SECONDS - began)) "$(compiled "$log" | wc -l) crates compiled, $twice outside crates more than once"
  for target in "${TARGETS[@]}"; do
    seen images "size of $target" "" "$(unpacked "$target") MB unpacked"
  done
}

again() {
  local began=$SECONDS log=$WALK/log/images-again.log
  [ -d "$WALK/images" ] || sources "$WALK/images"
  echo "// touched $(date +%s)" >>"$WALK/images/services/query/src/main.rs"
  rm -f "$log"
  build_all "$log"
  seen images "built after one file was touched" $((SECONDS - began)) "$(compiled "$log" | wc -l) crates compiled, $(foreign "$log") of them of outside"
}

# contained TARGET ARGUMENT...: runs the program of an image as the manifests do: unprivileged user, nothing writable, no
# capability, and here no network. Prints its output.
contained() {
  local target=$1; shift
  docker run --rm --interactive --read-only --cap-drop ALL --security-opt no-new-privileges --user 65532:65532 --network none \
    "tradewind/$target:0.2.0" "$@" 2>&1
}

start() {
  local target said
  for target in "${TARGETS[@]}"; do
    said=$(contained "$target" --help) || die "$target does not start: $said"
    case $target in
      # Asks a gateway that is not there, over HTTP: no panic, and no success.
      mesh | node) ! said=$(contained "$target" tx status "$(printf '%064d' 0)" --url http://127.0.0.1:1) || die "$target: $said" ;;
      *) ! said=$(contained "$target" --ready) || die "$target is ready without anybody: $said" ;;
    esac
    [[ $said != *panicked* ]] || die "$target: $said"
    seen images "$target starts read-only, without capabilities, as 65532" "" "$(tail -n 1 <<<"$said" | cut -c 1-80)"
  done
}

if [ $# -gt 0 ]; then "$1"; else build; again; start; fi
