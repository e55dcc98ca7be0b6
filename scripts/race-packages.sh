#!/usr/bin/env bash
# Prints the packages where there is a race to be found: their code or tests start goroutines. A mutex alone is no
# reason, since the tests of such a package use it from one goroutine. Not internal/faults: its nodes are
# processes, built without the detector.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./internal/... |
  while read -r package dir; do
    case $package in */internal/faults) continue ;; esac
    if grep -qE '^\s*(defer )?go [a-zA-Z(]|\.Go\(|t\.Parallel\(' "$dir"/*.go; then echo "$package"; fi
  done
