#!/usr/bin/env bash
# measured.sh PROGRAM ARG…: runs the test program of a package, as `go test -exec` asks for. It appends
# a line to the file QUOTAD_TEST_COSTS: the processor time of the program and of its children, and the
# time of a loop that is always the same. A machine that is slow today is slow in both.
set -euo pipefail
top=$PWD
while [ ! -e "$top/.git" ] && [ "$top" != / ]; do top=$(dirname "$top"); done
export QUOTAD_TEST_PACKAGE=${PWD#"$top"/}
times=$(mktemp)
trap 'rm -f "$times"' EXIT
rc=0
TIMEFORMAT='%3U %3S'
{ time "$@" 2>&3; } 3>&2 2>"$times" || rc=$?
{ time for ((i = 0; i < 100000; i++)); do :; done; } 2>>"$times"
awk -v package="$QUOTAD_TEST_PACKAGE" '
  { spent[NR] = $1 + $2 }
  END { printf "{\"package\":\"%s\",\"cpu_seconds\":%.3f,\"loop_seconds\":%.3f}\n", package, spent[1], spent[2] }
' "$times" >>"$QUOTAD_TEST_COSTS"
exit "$rc"
