#!/usr/bin/env bash
# What validators say of the document, for walk.sh. Only errors make it fail; warnings are shown.
. "$(dirname "$0")/lib.sh"

LINT=$WORK/tools/lint
[ -d "$LINT/python" ] || python3 -m venv "$LINT/python"
"$LINT/python/bin/pip" install -q "openapi-spec-validator==$OPENAPI_SPEC_VALIDATOR"
[ -d "$LINT/node_modules" ] || npm install --silent --prefix "$LINT" "@stoplight/spectral-cli@$SPECTRAL" "@redocly/cli@$REDOCLY"
# Spectral's schema is older than the one of OpenAPI 3.1.1, in which this URL may be relative.
cat >"$WORK/spectral.yaml" <<'END'
extends: ["spectral:oas"]
overrides: [{files: ["openapi.json#/externalDocs/url"], rules: {oas3-schema: "off"}}]
END
"$LINT/python/bin/openapi-spec-validator" "$WORK/openapi.json"
"$LINT/node_modules/.bin/spectral" lint "$WORK/openapi.json" --ruleset "$WORK/spectral.yaml"
"$LINT/node_modules/.bin/redocly" lint --format=summary "$WORK/openapi.json"
