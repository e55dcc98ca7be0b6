#!/usr/bin/env bash
# seeded-faults.sh [NAME…]: puts each fault of scripts/seeded-faults into a copy of the committed code,
# and fails unless its test fails there, and passes without the fault. Without a NAME it takes all. With
# BASE=commit it takes the code of that commit, and leaves out the faults that do not apply there.
#
# NAME.patch begins with these lines, an empty one, and a diff as git prints it:
#   Fault: what is wrong, in a sentence
#   Package: ./internal/quota
#   Test: TestVectorsLimits
# Test is a test's name, with the names of its subtests behind slashes, if only those are meant.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
export CGO_ENABLED=0
if [ $# = 0 ]; then
  for file in scripts/seeded-faults/*.patch; do
    name=${file##*/}
    set -- "$@" "${name%.patch}"
  done
fi
copy=$(temp_dir seeded)
trap 'git worktree remove --force "$copy/quotad"; rm -rf "$copy"' EXIT
git worktree add -q --detach "$copy/quotad" "${BASE:-HEAD}"
[ ! -d node_modules ] || ln -s "$PWD/node_modules" "$copy/quotad/node_modules"

# field FILE NAME: a line of the head of a patch.
field() { sed -n "/^$/q; s/^$2: //p" "$1"; }

# try PACKAGE TEST: runs a test in the copy, and leaves what it printed in log.
try() {
  local pattern="^${2//\//\$/^}\$"
  (cd "$copy/quotad/$1" && go test -vet=off -buildvcs=false -count=1 -timeout 30m -run "$pattern" .) >"$copy/log" 2>&1
}

# check NAME: prints what became of a fault. It fails if the fault was missed.
check() {
  local patch=$PWD/scripts/seeded-faults/$1.patch package test
  [ -f "$patch" ] || die "there is no scripts/seeded-faults/$1.patch"
  package=$(field "$patch" Package) test=$(field "$patch" Test)
  if [ -z "$package" ] || [ -z "$test" ] || [ -z "$(field "$patch" Fault)" ]; then
    die "$1: its head lacks Fault, Package or Test"
  fi
  if ! git -C "$copy/quotad" apply --check "$patch" 2>/dev/null; then
    echo "$1: the patch does not apply: make it anew"
    [ -n "${BASE:-}" ]
    return
  fi
  if [[ $passes != *" $package $test "* ]]; then
    try "$package" "$test" || { tail -n 30 "$copy/log"; echo "$1: $test fails without the fault, too"; return 1; }
    ! grep -q 'no tests to run' "$copy/log" || { echo "$1: $package has no $test"; return 1; }
    passes+=" $package $test "
  fi
  git -C "$copy/quotad" apply "$patch"
  try "$package" "$test" && rc=0 || rc=$?
  git -C "$copy/quotad" apply -R "$patch"
  [ "$rc" != 0 ] || { echo "$1: $test passes with the fault: $(field "$patch" Fault)"; return 1; }
  grep -qE '^ *--- FAIL: |^panic: ' "$copy/log" || { tail -n 30 "$copy/log"; echo "$1: the copy with the fault does not build"; return 1; }
  echo "$1: $test fails, as it should: $(field "$patch" Fault)"
}

missed=0 passes=
for name; do
  check "$name" || missed=$((missed + 1))
done
say "$# faults, $missed were missed"
[ "$missed" = 0 ]
