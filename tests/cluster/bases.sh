#!/usr/bin/env bash
# The images that the product's files name and that come from outside, under the names by which those files know them: made of
# Debian's packages and of what engines.sh built. bases.sh [TARGET...] of bases/Dockerfile; all without one.
. "$(dirname "$0")/lib.sh"

"$HERE/network.sh" up
"$HERE/network.sh" open
# compose.sh leaves an engine that has no name server.
stop dockerd
"$HERE/engine.sh" up

# Debian itself, by the mirror that this machine's apt uses.
if ! docker image inspect debian:bookworm-slim >/dev/null 2>&1; then
  command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap
  # shellcheck disable=SC2016 # apt's own variable
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' 'Identifier: Packages' | head -n 1)
  rm -rf "$WALK/debian"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$WALK/debian" "$mirror" >"$WALK/log/debootstrap.log"
  cp /etc/ssl/certs/ca-certificates.crt "$WALK/debian/etc/ssl/certs/"
  rm -rf "$WALK"/debian/var/{cache/apt,lib/apt/lists}/*
  tar --directory "$WALK/debian" --create . | docker import - debian:bookworm-slim
  rm -rf "$WALK/debian"
fi

base_images | while read -r target name; do
  [ $# = 0 ] || [[ " $* " == *" $target "* ]] || continue
  docker buildx build --quiet --load --network host --target "$target" --tag "$name" \
    --build-context "bin=$WALK/bin" --build-context "sysroot=$(rustc --print sysroot)" --build-context "goroot=$(go env GOROOT)" \
    "$HERE/bases" >"$WALK/log/base-$target.log" 2>&1 </dev/null || { say "FAILED to make $name: $WALK/log/base-$target.log"; continue; }
  say "made $name"
done
