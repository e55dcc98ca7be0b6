#!/usr/bin/env bash
# seeded-faults.sh [NAME…]: puts each fault of scripts/seeded-faults into a copy of the committed code,
# and fails unless its test fails there, and passes without the fault. Without a NAME it takes all.
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
git worktree add -q --detach "$copy/quotad" HEAD
[ ! -d node_modules ] || ln -s "$PWD/node_modules" "$copy/quotad/node_modules"

# field FILE NAME: a line of the head of a patch.
field() { sed -n "/^$/q; s/^$2: //p" "$1"; }

# try PACKAGE TEST: runs a test in the copy, and leaves what it printed in log.
try() {
  local pattern="^${2//\//\$/^}\$"
  (cd "$copy/quotad/$1" && go test -vet=off -buildvcs=false -count=1 -timeout 30m -run "$pattern" .) >"$copy/log" 2>&1
}

caught=0 passes=
for name; do
  patch=$PWD/scripts/seeded-faults/$name.patch
  [ -f "$patch" ] || die "there is no scripts/seeded-faults/$name.patch"
  package=$(field "$patch" Package) test=$(field "$patch" Test)
  if [ -z "$package" ] || [ -z "$test" ] || [ -z "$(field "$patch" Fault)" ]; then
    die "$name: its head lacks Fault, Package or Test"
  fi
  if [[ $passes != *" $package $test "* ]]; then
    try "$package" "$test" || { tail -n 30 "$copy/log" >&2; die "$name: $test fails without the fault, too"; }
    ! grep -q 'no tests to run' "$copy/log" || die "$name: $package has no $test"
    passes+=" $package $test "
  fi
  git -C "$copy/quotad" apply "$patch" || die "$name: the patch does not apply: make it anew"
  if try "$package" "$test"; then
    die "$name: $test passes with the fault: $(field "$patch" Fault)"
  fi
  grep -qE '^ *--- FAIL: |^panic: ' "$copy/log" || { tail -n 30 "$copy/log" >&2; die "$name: the copy with the fault does not build"; }
  git -C "$copy/quotad" apply -R "$patch"
  caught=$((caught + 1))
  printf '%s: %s fails, as it should: %s\n' "$name" "$test" "$(field "$patch" Fault)"
done
say "$caught faults, each caught by its test"
