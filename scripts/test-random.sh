#!/usr/bin/env bash
# test-random.sh ROUNDS FLAGS…: runs the packages that have random tests, each round with new
# seeds. It goes on after a failure, and then fails.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
rounds=$1
shift
[[ $rounds =~ ^[1-9][0-9]{0,3}$ ]] || die "ROUNDS must be between 1 and 9999, not $rounds"
mapfile -t packages < <(grep -rlE 'testkit\.(Each)?Seed\(|rapid\.Check\(' --include='*_test.go' internal cmd client | sed 's|/[^/]*$||; s|^|./|' | sort -u | grep -v '^./cmd/quotad-stripe')
[ ${#packages[@]} -gt 0 ] || die 'no random test is found'
failed=0
for ((round = 1; round <= rounds; round++)); do
  say "round $round of $rounds"
  QUOTAD_SEED=new RAPID_SEED=0 go test -count=1 "$@" "${packages[@]}" || failed=$((failed + 1))
done
[ "$failed" = 0 ] || die "$failed of $rounds rounds failed: each failed test says its seed"
