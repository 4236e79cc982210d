#!/bin/sh
# Starts a server of the bus. The server reads its certificate at its start and at SIGHUP: it gets this signal when
# cert-manager has replaced the files, within a minute. Connections stay open.
set -eu
watch() {
    loaded=$(cat /run/secrets/tls/*.crt)
    while sleep 60; do
        found=$(cat /run/secrets/tls/*.crt) || continue
        [ "$found" = "$loaded" ] && continue
        loaded=$found
        # This shell's process, which is the server's by then.
        kill -HUP $$
    done
}
watch &
exec nats-server "$@"
