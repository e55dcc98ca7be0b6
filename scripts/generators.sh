#!/usr/bin/env bash
# Runs generators of clients on docs/openapi.json, compiles what they make, and calls a quotad with it:
# openapi-typescript, @hey-api/openapi-ts and oapi-codegen. redocly judges the document.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/deps.sh go npm node curl

dir=$(temp_dir generators)
pid=
cleanup() {
  [ -z "$pid" ] || stop_server "$pid" || true
  rm -rf "$dir"
}
trap cleanup EXIT
cp -r scripts/generators/. "$dir"
cp docs/openapi.json "$dir"
go build -buildvcs=false -o "$dir/quotad" ./cmd/quotad

# tool NAME COMMAND…: runs COMMAND, and prints its output if it fails.
tool() {
  local name=$1
  shift
  "$@" >"$dir/out" 2>&1 || { cat "$dir/out" >&2; die "$name does not accept docs/openapi.json, or what it makes does not work"; }
}

# The quotad to be called, with the demo's plan: 5,000 an hour and 200 a day.
for name in $(compgen -e QUOTAD_ || true); do unset "$name"; done
QUOTAD_LISTEN=127.0.0.1:$(free_port)
export QUOTAD_LISTEN URL=http://$QUOTAD_LISTEN
QUOTAD_DATA_DIR=$dir/data "$dir/quotad" serve --demo >"$dir/log" 2>&1 </dev/null &
pid=$!

cd "$dir"
npm ci --ignore-scripts --no-audit --no-fund >out 2>&1 || { cat out >&2; die 'npm could not install the generators of scripts/generators/package-lock.json'; }
bin=node_modules/.bin
tool redocly $bin/redocly lint openapi.json
tool openapi-typescript $bin/openapi-typescript openapi.json -o generated/fetch.d.ts
tool @hey-api/openapi-ts $bin/openapi-ts -i openapi.json -o generated/sdk -p @hey-api/typescript @hey-api/sdk @hey-api/client-fetch
tool 'the TypeScript of a generator' $bin/tsc -p .
mkdir -p go/generated
tool oapi-codegen go -C go tool oapi-codegen -generate types,client -package generated -o generated/api.go ../openapi.json
tool oapi-codegen go -C go build -o ../called .

wait_ready "$URL" "$pid" log
KEY=$(cat data/demo-admin-key)
export KEY
tool openapi-typescript node built/fetch.js
tool @hey-api/openapi-ts node built/sdk.js
tool oapi-codegen ./called
say 'generators: redocly, openapi-typescript, @hey-api/openapi-ts and oapi-codegen accept the document, and their clients work'
