#!/usr/bin/env bash
# one-processor.sh COMMAND…: runs it on one processor, beside a loop that takes half of that one.
# No test may hang on how fast the machine is.
set -euo pipefail
taskset -c 0 bash -c 'while :; do :; done' &
loop=$!
trap 'kill "$loop"' EXIT
GOMAXPROCS=2 taskset -c 0 "$@"
