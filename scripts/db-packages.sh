#!/usr/bin/env bash
# Prints the packages whose tests reach PostgreSQL: those that depend,
# themselves or in their tests, on internal/postgres.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -test -f '{{if .ForTest}}{{.ForTest}} {{.ImportPath}} {{join .Deps " "}}{{end}}' ./... |
  awk '/ quotad\/internal\/postgres/ && !seen[$1]++ { print $1; n++ } END { exit !n }' || {
  echo 'no package with database tests found' >&2
  exit 1
}
