#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target for TIME, one after the other. What it
# finds is written to the package's testdata/fuzz, to be committed with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
found=
while IFS=: read -r file name; do
  found=1
  echo "== ${file%/*} $name"
  go test -buildvcs=false -run '^$' -fuzz "^$name\$" -fuzztime "${1:-30s}" "./${file%/*}"
done < <(git ls-files -co --exclude-standard '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' /dev/null | sed 's/:func /:/')
[ -n "$found" ] || echo 'no fuzz targets'
