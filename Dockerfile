# syntax=docker/dockerfile:1
# One image for each workload (--target edge, query, tx-relay, node-info, export), one for the command line (mesh), and one
# for a consensus node to develop against (node). Each holds its program, the libraries that it needs, and nothing else.

ARG RUST=1.95

# What decides about dependencies, and empty programs in the place of ours: this layer changes with a manifest only.
FROM rust:${RUST}-slim-bookworm AS manifests
WORKDIR /src
COPY . .
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock ! \( -name build.rs ! -path '*/src/*' \) -delete \
    && find . -name build.rs -exec sh -c 'echo "fn main() {}" > "$1"' _ {} \; \
    && find . -mindepth 2 -name Cargo.toml -execdir sh -c 'mkdir -p src && : > src/lib.rs && echo "fn main() {}" > src/main.rs' \; \
    && find . -type d -empty -delete

FROM rust:${RUST}-slim-bookworm AS build
WORKDIR /src
ENV CARGO_INCREMENTAL=0
COPY --from=manifests /src .
RUN cargo build --release --locked --features export/s3,mesh/s3 \
    -p edge -p query -p tx-relay -p node-info -p export -p mesh \
    && find . -mindepth 1 -maxdepth 1 ! -name target -exec rm -r {} +
COPY . .
# The commit that the API tells of itself.
ARG MESH_COMMIT=unknown
ENV MESH_COMMIT=${MESH_COMMIT}
# What is copied may be older than what was built of the empty programs.
RUN find . -name '*.rs' -exec touch {} + \
    && cargo build --release --locked --features export/s3,mesh/s3 \
    -p edge -p query -p tx-relay -p node-info -p export -p mesh

# What every program finds: the C library, certificates, a user, and a folder of its own.
FROM rust:${RUST}-slim-bookworm AS found
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/mesh /tmp/program
RUN mkdir -p /root-of/etc/ssl/certs /root-of/tmp /root-of/usr/local/bin /home-of \
    && cp /etc/ssl/certs/ca-certificates.crt /root-of/etc/ssl/certs/ \
    && echo 'mesh:x:65532:65532::/var/lib/mesh:/nonexistent' > /root-of/etc/passwd \
    && echo 'mesh:x:65532:' > /root-of/etc/group \
    && chmod 1777 /root-of/tmp \
    && ldd /tmp/program | grep -o '/[^ ]*' | while read -r library; do cp --parents --dereference "$library" /root-of; done

FROM scratch AS runtime
COPY --from=found /root-of /
# A new volume takes its owner from here.
COPY --from=found --chown=65532:65532 /home-of /var/lib/mesh
ENV PATH=/usr/local/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532:65532
WORKDIR /var/lib/mesh

FROM runtime AS edge
COPY --from=build /src/target/release/edge /usr/local/bin/edge
EXPOSE 8080 9090 9100
ENTRYPOINT ["edge"]

FROM runtime AS query
COPY --from=build /src/target/release/query /usr/local/bin/query
EXPOSE 9100
ENTRYPOINT ["query"]

FROM runtime AS tx-relay
COPY --from=build /src/target/release/tx-relay /usr/local/bin/tx-relay
EXPOSE 9100
ENTRYPOINT ["tx-relay"]

FROM runtime AS node-info
COPY --from=build /src/target/release/node-info /usr/local/bin/node-info
EXPOSE 9100
ENTRYPOINT ["node-info"]

FROM runtime AS export
COPY --from=build /src/target/release/export /usr/local/bin/export
EXPOSE 9100
ENTRYPOINT ["export"]

FROM golang:1.26-bookworm AS cometbft
RUN CGO_ENABLED=0 go install github.com/cometbft/cometbft/cmd/cometbft@v0.38.19

FROM runtime AS node
COPY --from=cometbft /go/bin/cometbft /usr/local/bin/cometbft
COPY --from=build /src/target/release/mesh /usr/local/bin/mesh
EXPOSE 26657
ENTRYPOINT ["mesh"]

# The last one is what a build without a target makes.
FROM runtime AS mesh
COPY --from=build /src/target/release/mesh /usr/local/bin/mesh
ENTRYPOINT ["mesh"]
