#!/usr/bin/env bash
# generate.sh ROOT: writes every generated file under ROOT, at the path it has
# in the repository. `make generate` writes here, `make verify` elsewhere.
set -euo pipefail
root=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
mkdir -p "$root/docs"
go run -buildvcs=false ./cmd/quotad openapi >"$root/docs/openapi.json.new"
mv "$root/docs/openapi.json.new" "$root/docs/openapi.json"

# The zone data of the Go that builds quotad, which are in the public domain.
mkdir -p "$root/internal/calendar"
cat "$(go env GOROOT)/lib/time/zoneinfo.zip" >"$root/internal/calendar/zoneinfo.zip.new"
mv "$root/internal/calendar/zoneinfo.zip.new" "$root/internal/calendar/zoneinfo.zip"

scripts/assets.sh "$root"
