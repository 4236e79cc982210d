# Versions of everything the walk builds from Go modules. Read by the other scripts.
# shellcheck shell=bash disable=SC2034

# The container engine.
RUNC=v1.3.5
CONTAINERD=v2.2.9
MOBY=v2.0.0-beta.24
BUILDX=v0.30.1
COMPOSE=v2.40.3

# The cluster.
ETCD=v3.5.35
KUBERNETES=v1.33.13
COREDNS=v1.14.3
METRICS_SERVER=v0.9.0

# What the product's manifests name as images, in those versions where a module proxy has them.
NATS_SERVER=v2.15.2
OTELCOL=v0.164.0    # Named is 0.165.0, which the module proxy of the first walk refused.
JAEGER=v1.76.0      # Its cmd/jaeger is Jaeger 2.13.
PROMETHEUS=v0.307.3 # Prometheus 3.7.3.

# Operators, and a store that speaks S3.
CLOUDNATIVE_PG=v1.27.1
CERT_MANAGER=v1.21.0
KEDA=v2.20.2
PROMETHEUS_OPERATOR=v0.85.0
VERSITYGW=v1.8.0
