# One image for each workload (--target edge, query, tx-relay, node-info, export, ingest), one for the command line (mesh), and one
# for a consensus node to develop against (node). Each holds its program, the libraries that it needs, and nothing else.

ARG RUST=1.95

FROM rust:${RUST}-slim-bookworm AS build
WORKDIR /src
ENV CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=/target
COPY . .
# The commit that the API tells of itself.
ARG MESH_COMMIT=unknown
# Built libraries stay in a cache of the builder. What is copied may be older than what that holds, so our own sources are
# made new: they are always compiled, and never taken from an older build.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/target,sharing=locked \
    find . -name '*.rs' -exec touch {} + \
    && cargo build --release --locked \
    --bin edge --bin query --bin tx-relay --bin node-info --bin export --bin ingest --bin mesh \
    && mkdir /programs \
    && cd /target/release && cp edge query tx-relay node-info export ingest mesh /programs

# What every program finds: the C library, certificates, a user, and a folder of its own.
FROM rust:${RUST}-slim-bookworm AS found
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /programs/mesh /tmp/program
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
COPY --from=build /programs/edge /usr/local/bin/edge
EXPOSE 8080 9090 9100
ENTRYPOINT ["edge"]

FROM runtime AS query
COPY --from=build /programs/query /usr/local/bin/query
EXPOSE 9100
ENTRYPOINT ["query"]

FROM runtime AS tx-relay
COPY --from=build /programs/tx-relay /usr/local/bin/tx-relay
EXPOSE 9100
ENTRYPOINT ["tx-relay"]

FROM runtime AS node-info
COPY --from=build /programs/node-info /usr/local/bin/node-info
EXPOSE 9100
ENTRYPOINT ["node-info"]

FROM runtime AS export
COPY --from=build /programs/export /usr/local/bin/export
EXPOSE 9100
ENTRYPOINT ["export"]

FROM runtime AS ingest
COPY --from=build /programs/ingest /usr/local/bin/ingest
EXPOSE 9100
ENTRYPOINT ["ingest"]

FROM golang:1.26-bookworm AS cometbft
RUN CGO_ENABLED=0 go install github.com/cometbft/cometbft/cmd/cometbft@v0.38.19

FROM runtime AS node
COPY --from=cometbft /go/bin/cometbft /usr/local/bin/cometbft
COPY --from=build /programs/mesh /usr/local/bin/mesh
EXPOSE 26657
ENTRYPOINT ["mesh"]

# The last one is what a build without a target makes.
FROM runtime AS mesh
COPY --from=build /programs/mesh /usr/local/bin/mesh
ENTRYPOINT ["mesh"]
