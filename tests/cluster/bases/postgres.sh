#!/bin/bash
# Starts PostgreSQL by the conventions of its well-known image: the first time it makes the database that POSTGRES_* name and
# runs the scripts of /docker-entrypoint-initdb.d against a server that only they reach.
set -euo pipefail
if [ "${1:-postgres}" = postgres ] || [ "${1#-}" != "$1" ]; then
  [ "${1:-}" != postgres ] || shift
  # A mounted volume may be group-writable; the server refuses that.
  mkdir -p "$PGDATA"
  chmod 700 "$PGDATA" || true
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    export POSTGRES_USER=${POSTGRES_USER:-postgres}
    export POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}
    # shellcheck disable=SC2086 # arguments, as words
    initdb --username="$POSTGRES_USER" --pwfile="${POSTGRES_PASSWORD_FILE:-/dev/stdin}" ${POSTGRES_INITDB_ARGS:-} <<<"${POSTGRES_PASSWORD:-}"
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    PGPASSWORD=$(cat "${POSTGRES_PASSWORD_FILE:-/dev/stdin}" <<<"${POSTGRES_PASSWORD:-}")
    export PGPASSWORD PGHOST=/var/run/postgresql PGUSER=$POSTGRES_USER PGDATABASE=$POSTGRES_DB
    pg_ctl start --wait --options "-c listen_addresses='' -c unix_socket_directories=$PGHOST"
    [ "$POSTGRES_DB" = postgres ] || psql -v ON_ERROR_STOP=1 --no-psqlrc --dbname postgres -c "CREATE DATABASE \"$POSTGRES_DB\""
    for script in /docker-entrypoint-initdb.d/*; do
      # shellcheck disable=SC1090
      case $script in
        *.sh) if [ -x "$script" ]; then "$script"; else . "$script"; fi ;;
        *.sql) psql -v ON_ERROR_STOP=1 --no-psqlrc --file "$script" ;;
      esac
    done
    pg_ctl stop --wait --mode=fast
    unset PGPASSWORD PGHOST PGUSER PGDATABASE
  fi
  set -- postgres -c "listen_addresses=*" "$@"
fi
exec "$@"
