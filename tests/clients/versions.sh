# Versions of the generators and of what their clients are compiled with. Read by the other scripts.
# shellcheck shell=bash disable=SC2034

OPENAPI_GENERATOR=7.25.0
OAPI_CODEGEN=v2.8.2
OPENAPI_TYPESCRIPT=7.13.0
OPENAPI_FETCH=0.17.0
OPENAPI_PYTHON_CLIENT=0.29.1
TYPESCRIPT=5.9.3
NODE_TYPES=26.6.6

# Validators of the OpenAPI document.
OPENAPI_SPEC_VALIDATOR=0.9.0
SPECTRAL=6.16.3
REDOCLY=2.77.0
