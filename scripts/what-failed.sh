#!/usr/bin/env bash
# what-failed.sh LOG TARGET: prints each failed test of a log by gotestsum, with its first message and
# the make target that runs it alone. Of a log without any it prints the last lines.
set -euo pipefail
awk -v target="$2" '
  /^=== FAIL: / {
    test = $4
    sub(/\/.*/, "", test)
    key = $3 " " test
    if (!(key in said)) order[++n] = key
    if (!(key in said)) said[key] = ""
    next
  }
  /^=== / { key = "" }
  key != "" && said[key] == "" && (/\.go:[0-9]+: / || /^panic: / || /WARNING: DATA RACE/) { said[key] = $0 }
  { last[NR % 6] = $0 }
  END {
    for (i = 1; i <= n && i <= 6; i++) {
      split(order[i], part, " ")
      message = said[order[i]]
      sub(/^ +/, "", message)
      printf "%s %s\n  %s\n", part[1], part[2], substr(message, 1, 300)
      if (part[2] != "") printf "  alone: make %s PKG=./%s TESTFLAGS=\"-run ^%s\\$\"\n", target, part[1], part[2]
    }
    if (n > 6) printf "and %d more\n", n - 6
    if (n == 0) for (i = NR - 5; i <= NR; i++) if (i > 0) print "  " substr(last[i % 6], 1, 300)
  }' "$1"
