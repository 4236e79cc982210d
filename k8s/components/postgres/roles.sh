#!/bin/sh
# The users beside the owner, made with the database. What they may do `mesh migrate` grants.
set -eu
for user in query node-info export ingest; do
    psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --quiet \
        --set=user="$user" --set=password="$(cat "/run/secrets/postgres-$user")" <<'SQL'
CREATE ROLE :"user" LOGIN PASSWORD :'password';
SQL
done
