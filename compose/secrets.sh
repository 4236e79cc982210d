#!/bin/sh
# Makes the passwords that docker-compose.yml hands to each block as files, and makes mounted files readable.
# Existing passwords stay.
set -eu
cd "$(dirname "$0")"
umask 077
# The users of the containers read these files of the checkout, which a strict umask made private.
for mounted in collector.yaml keys prometheus.yaml grafana ../k8s/base/nats ../k8s/components/postgres/roles.sh \
    ../k8s/telemetry; do
    if [ -e "$mounted" ]; then chmod -R a+rX "$mounted"; fi
done
mkdir -p secrets
chmod 700 secrets
cd secrets
# The folder is private; inside it the files are readable by any user of a container.
word() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
once() { [ -e "$1" ] || { printf '%s\n' "$2" >"$1.new" && chmod 444 "$1.new" && mv "$1.new" "$1"; }; }
for user in edge query tx-relay export node-info ingest decoder operator; do
    # A letter in front: the bus server takes a word of digits for a number.
    once "bus-$user" "$user:p$(word)"
done
once postgres-owner "$(word)"
once postgres-query "$(word)"
once postgres-node-info "$(word)"
once postgres-export "$(word)"
once postgres-ingest "$(word)"
# The bus server reads the same passwords from its environment.
for user in edge query tx-relay export node-info ingest decoder operator; do
    name=$(printf %s "$user" | tr 'a-z-' 'A-Z_')
    printf 'NATS_%s_PASSWORD=%s\n' "$name" "$(cut -d: -f2 "bus-$user")"
done >nats.env
