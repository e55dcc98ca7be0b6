#!/usr/bin/env bash
# readme-check.sh [FILE]: runs the commands of FILE (README.md) against a fresh
# server and compares what they print.
#
# A fenced `sh` block right below a line `<!-- ci -->` is run. The blocks run in
# order in one shell, with URL and KEY (the admin key) set. A `json` or `text`
# block that follows, with no heading or other block in between, is what the
# block must print, where … stands for anything. In `json`, white space outside
# of strings does not count; in `text`, white space at the ends of lines does not.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
file=${1:-README.md}
scripts/deps.sh go postgres curl
make --no-print-directory build >&2

dir=$(temp_dir readme)
pid=
cleanup() {
  [ -z "$pid" ] || stop_server "$pid" || true
  rm -rf "$dir"
}
trap cleanup EXIT
mkdir "$dir/doc"

# n.sh is the n-th marked block; n.json or n.text what it must print.
awk -v dir="$dir/doc/" '
  out != "" && /^```[ \t]*$/ { close(out); out = ""; next }
  out != ""                  { print > out; next }
  skip && /^```[ \t]*$/      { skip = 0; next }
  skip                       { next }
  /^<!-- ci -->[ \t]*$/      { marked = 1; want = 0; next }
  /^```sh[ \t]*$/ && marked  { n++; out = dir n ".sh"; at[n] = FNR; print "# line " FNR > out; want = 1; marked = 0; next }
  /^```(json|text)[ \t]*$/ && want { sub(/^```/, ""); sub(/[ \t]*$/, ""); out = dir n "." $0; printf "" > out; want = 0; next }
  /^```/                     { skip = 1; want = 0 }
  /^#/                       { want = 0 }
  /[^ \t]/ && marked         { print FILENAME ":" FNR ": <!-- ci --> is not right above a sh block" > "/dev/stderr"; exit 1 }
  END                        { print n + 0 > (dir "count") }
' "$file"
count=$(cat "$dir/doc/count")
[ "$count" -gt 0 ] || die "$file has no block marked <!-- ci -->"

# One shell for all, so that a variable set in one block is there in the next.
{
  echo 'set -euo pipefail'
  for ((n = 1; n <= count; n++)); do
    printf 'echo %d >"%s/at"\n{\n' "$n" "$dir"
    cat "$dir/doc/$n.sh"
    printf '} >"%s/%d.out"\n' "$dir" "$n"
  done
} >"$dir/all.sh"

for name in $(compgen -e QUOTAD_ || true); do unset "$name"; done
QUOTAD_LISTEN=127.0.0.1:$(free_port)
export QUOTAD_LISTEN QUOTAD_DATA_DIR=$dir/data QUOTAD_ADMIN_KEY=readme-check-0123456789abcdef0123456789abcdef
export URL=http://$QUOTAD_LISTEN KEY=$QUOTAD_ADMIN_KEY
bin/quotad serve --demo >"$dir/log" 2>&1 </dev/null &
pid=$!
wait_ready "$URL" "$pid" "$dir/log"
bash "$dir/all.sh" </dev/null || {
  rc=$?
  n=$(cat "$dir/at")
  cat "$dir/doc/$n.sh" "$dir/$n.out" >&2
  die "$file: this block failed with exit code $rc"
}

# squeeze KIND: standard input without the white space that does not count.
squeeze() {
  if [ "$1" = json ]; then
    tr -d '\r\n' | awk '{
      for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        if (!str && c ~ /[ \t]/) continue
        if (c == "\"" && !esc) str = !str
        esc = (c == "\\" && !esc)
        printf "%s", c
      }
    }'
  else
    tr -d '\r' | sed 's/[[:space:]]*$//'
  fi
}

failed=0 compared=0
for ((n = 1; n <= count; n++)); do
  for kind in json text; do
    [ -f "$dir/doc/$n.$kind" ] || continue
    compared=$((compared + 1))
    want=$(squeeze $kind <"$dir/doc/$n.$kind" | sed 's/[][\\*?()|!+@]/\\&/g')
    got=$(squeeze $kind <"$dir/$n.out")
    # shellcheck disable=SC2053 # the right side is a pattern on purpose
    [[ $got == ${want//…/*} ]] && continue
    failed=$((failed + 1))
    {
      printf '%s: a block does not print what follows it\n' "$file"
      cat "$dir/doc/$n.sh"
      printf -- '--- expected\n%s\n--- printed\n%s\n\n' "$(cat "$dir/doc/$n.$kind")" "$(cat "$dir/$n.out")"
    } >&2
  done
done
say "$file: $count blocks run, $compared compared, $failed differ"
[ "$failed" = 0 ]
