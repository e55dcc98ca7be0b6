#!/usr/bin/env bash
# assets.sh ROOT: copies what the pages take from npm to internal/web/assets under ROOT, with
# the licences. package-lock.json pins each package by its hash. Building quotad needs no Node:
# the copies are committed, and `make verify` compares them.
set -euo pipefail
root=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/deps.sh npm

to=$root/internal/web/assets from=node_modules
mkdir -p "$to"
# htmx and its extension are one file: as two they would race each other.
{
  printf '/* htmx.org %s, 0BSD: see licence-htmx.txt */\n' "$(sed -n 's/^  "version": "\(.*\)",$/\1/p' $from/htmx.org/package.json)"
  cat $from/htmx.org/dist/htmx.min.js
  printf ';\n'
  sed '/^\/\/# sourceMappingURL=/d' $from/htmx.org/dist/ext/hx-sse.min.js
} | sed '/^\/\/# sourceMappingURL=/d' >"$to/vendor.js"
cp $from/htmx.org/LICENSE "$to/licence-htmx.txt"
cp $from/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2 "$to/inter.woff2"
cp $from/@fontsource-variable/inter/LICENSE "$to/licence-inter.txt"
