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

# The fonts of PDFs, cut to the letters that they are used for: see internal/billing/document/fonts.go.
npm ci --prefix scripts/fonts --ignore-scripts --no-audit --no-fund >&2 || die 'npm could not install the fonts of scripts/fonts/package-lock.json'
to=$root/internal/billing/document/fonts from=scripts/fonts/node_modules/@expo-google-fonts
mkdir -p "$to"
cut() { go run -buildvcs=false ./scripts/fonts "$from/$1/400Regular/$2_400Regular.ttf" "$to/$3.ttf.gz" "$4"; }
cut noto-sans NotoSans latin 0020-02ff,0370-0482,048a-058f,1d00-1dbf,1e00-1fff,2010-2027,2030-205e,2070-20cf,2100-218f,2c60-2c7f,a640-a66e,a720-a7ff,fb00-fb06
cut noto-sans-hebrew NotoSansHebrew hebrew 0020-0020,05be-05be,05d0-05f4
cut noto-sans-thai NotoSansThai thai 0020-0020,0e01-0e5b
cut noto-sans-kr NotoSansKR hangul 0020-0020,3131-318e,ac00-d7a3
cut noto-sans-sc NotoSansSC han 0020-0020,3000-30ff,4e00-9fff,ff00-ffef
cp "$from/noto-sans/LICENSE_FONT" "$to/licence-noto.txt"
cp "$from/noto-sans-sc/LICENSE_FONT" "$to/licence-noto-cjk.txt"
