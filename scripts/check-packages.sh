#!/usr/bin/env bash
# check-packages.sh PKG…: fails, and explains what to do, when PKG names no package with tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
for package; do
  case $package in
    ./bench | ./bench/* | ./cmd/quotad-stripe | ./cmd/quotad-stripe/*)
      die "PKG=$package is in a module of its own: run its tests by (cd $package && go test ./...)" ;;
    . | .. | ./* | ../* | /*) ;;
    *) [ ! -d "$package" ] || die "PKG=$package is a package of Go's own library: write PKG=./$package" ;;
  esac
  found=$(go list -f '{{len .TestGoFiles}} {{len .XTestGoFiles}}' "$package" 2>&1) ||
    die "PKG=$package names no package (${found##*$'\n'}): name a directory of this repository, such as PKG=./internal/quota, or PKG=./internal/quota/... with all below it"
  [ -n "$found" ] || die "PKG=$package matches no package: name a directory of this repository, such as PKG=./internal/quota"
  grep -qv '^0 0$' <<<"$found" || die "PKG=$package has no tests"
done
