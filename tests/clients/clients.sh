# The clients: for each how it is generated from the gateway's own document, compiled and run, without a flag that is there for
# our sake. Each function runs in a folder of the client's own, empty at first. Sourced by step.sh.
# shellcheck shell=bash

# Tools are installed once into the work folder.
generator() {
  local jar=$WORK/tools/openapi-generator-cli-$OPENAPI_GENERATOR.jar
  [ -e "$jar" ] || mvn -q -B dependency:copy "-Dartifact=org.openapitools:openapi-generator-cli:$OPENAPI_GENERATOR" \
    "-DoutputDirectory=$WORK/tools"
  java -jar "$jar" generate -i "$GATEWAY/openapi.json" -g "$1" -o client
}
node_tools() {
  [ -d "$WORK/tools/node/node_modules" ] || npm install --silent --prefix "$WORK/tools/node" "typescript@$TYPESCRIPT" \
    "@types/node@$NODE_TYPES" "openapi-typescript@$OPENAPI_TYPESCRIPT" "openapi-fetch@$OPENAPI_FETCH"
  ln -s "$WORK/tools/node/node_modules" node_modules
}
python_at() { [ -d "$1" ] || python3 -m venv "$1"; }

# Compiles a driver in TypeScript together with the client: tsc_driver DRIVER KIND-OF-MODULES
tsc_driver() {
  cp "$DRIVERS/$1" main.ts
  echo "{\"type\":\"$2\"}" >package.json
  echo '{"compilerOptions":{"target":"es2022","module":"nodenext","strict":true,"outDir":"dist","types":["node"],
    "lib":["es2022","dom"]},"include":["main.ts","client/**/*.ts"]}' >tsconfig.json
  node_modules/.bin/tsc -p .
}
# A program in Go of a driver: go_driver DRIVER
go_driver() {
  cp "$DRIVERS/$1" main.go
  cp "$DRIVERS/report.go" .
  go mod tidy
  go vet ./...
  go build -o walk .
}

generate_python() { generator python; }
compile_python() {
  python_at venv
  venv/bin/pip install -q ./client
  venv/bin/python -m compileall -q client/openapi_client
}
call_python() { venv/bin/python -B "$DRIVERS/python.py"; }

generate_go() { generator go; }
compile_go() {
  local module=github.com/GIT_USER_ID/GIT_REPO_ID # What the generator calls it.
  printf 'module walk\n\ngo 1.24\n\nrequire %s v0.0.0\n\nreplace %s => ./client\n' $module $module >go.mod
  (cd client && go vet .)
  go_driver go.go
}
call_go() { ./walk; }

generate_typescript-fetch() { generator typescript-fetch; }
compile_typescript-fetch() {
  node_tools
  tsc_driver typescript-fetch.ts commonjs
}
call_typescript-fetch() { node dist/main.js; }

generate_java() { generator java; }
compile_java() {
  (cd client && mvn -q -B -DskipTests package)
  javac -d driver -cp 'client/target/classes:client/target/lib/*' "$DRIVERS/Walk.java"
}
call_java() { java -cp 'driver:client/target/classes:client/target/lib/*' Walk; }

generate_oapi-codegen() {
  GOBIN=$WORK/tools/go go install "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$OAPI_CODEGEN"
  mkdir gateway
  "$WORK/tools/go/oapi-codegen" -package gateway -o gateway/gateway.go "$GATEWAY/openapi.json"
}
compile_oapi-codegen() {
  printf 'module walk\n\ngo 1.24\n' >go.mod
  go_driver oapi-codegen.go
}
call_oapi-codegen() { ./walk; }

generate_openapi-typescript() {
  node_tools
  node_modules/.bin/openapi-typescript "$GATEWAY/openapi.json" -o client/gateway.d.ts
}
compile_openapi-typescript() { tsc_driver openapi-typescript.ts module; }
call_openapi-typescript() { node dist/main.js; }

generate_openapi-python-client() {
  python_at "$WORK/tools/python"
  "$WORK/tools/python/bin/pip" install -q "openapi-python-client==$OPENAPI_PYTHON_CLIENT"
  "$WORK/tools/python/bin/openapi-python-client" generate --url "$GATEWAY/openapi.json"
}
compile_openapi-python-client() {
  python_at venv
  venv/bin/pip install -q ./tradewind-client
  venv/bin/python -m compileall -q tradewind-client
}
call_openapi-python-client() { venv/bin/python -B "$DRIVERS/openapi-python-client.py"; }
