#!/usr/bin/env bash
# Fails when a generated file differs from what would be generated now.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
fresh=$(temp_dir verify)
trap 'rm -rf "$fresh"' EXIT
scripts/generate.sh "$fresh"
rc=0
while read -r file; do
  diff -u "$file" "$fresh/$file" || rc=1
done < <(cd "$fresh" && find . -type f | sed 's|^\./||')
[ $rc = 0 ] || die 'out of date; run: make generate'
