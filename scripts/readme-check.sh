#!/usr/bin/env bash
# readme-check.sh [FILE...]: runs the commands of each FILE and compares what they
# print. Without a FILE it takes README.md, and then the pages of docs/guide in the
# order of their names, and docs/operations.md. All run against one new server with the
# demo's data, as those of a reader do. Its webhooks may lead to this machine. Each page
# makes what it needs, so one FILE alone works, too. The runbook makes servers of its own,
# which refuse to run as root: there its commands run as the user postgres.
#
# A fenced `sh` block right below a line `<!-- ci -->` is run. The blocks of a file
# run in order in one shell, with URL and KEY (the admin key) set, in a directory of
# its own that has quotad's bin. A `json` or `text` block that follows, with no heading or
# other block in between, is what the block must print, where … stands for anything.
# In `json`, white space outside of strings does not count; in `text`, white space
# at the ends of lines does not. A block of any language right below
# `<!-- ci NAME -->` becomes the file NAME in that directory.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
[ $# -gt 0 ] || set -- README.md docs/guide/*.md docs/operations.md
scripts/deps.sh go postgres curl python
make --no-print-directory build build-stripe >&2

root=$PWD
all=$(temp_dir readme)
pid=
cleanup() {
  [ -z "$pid" ] || stop_server "$pid" || true
  rm -rf "$all"
}
trap cleanup EXIT

for dir in /usr/lib/postgresql/*/bin ${PGBIN:+"$PGBIN"}; do
  [ -x "$dir/pg_rewind" ] && PATH=$dir:$PATH # the runbook calls them by their names
done
for name in $(compgen -e QUOTAD_ || true); do unset "$name"; done
export QUOTAD_ADMIN_KEY=readme-check-0123456789abcdef0123456789abcdef KEY=readme-check-0123456789abcdef0123456789abcdef
export no_proxy=127.0.0.1

# extract FILE DIR: n.sh is the n-th marked block; n.json or n.text what it must print.
# Files that blocks become are in DIR/files.
extract() {
  mkdir -p "$2/files"
  ln -s "$root/bin" "$2/files/bin"
  awk -v dir="$2/" '
    out != "" && /^```[ \t]*$/ { close(out); out = ""; next }
    out != ""                  { print > out; next }
    skip && /^```[ \t]*$/      { skip = 0; next }
    skip                       { next }
    /^<!-- ci( [A-Za-z0-9._-]+)? -->[ \t]*$/ { marked = 1; want = 0; name = $3 == "-->" ? "" : $3; next }
    /^```[a-z]+[ \t]*$/ && marked && name != "" { out = dir "files/" name; printf "" > out; marked = 0; next }
    /^```sh[ \t]*$/ && marked  { n++; out = dir n ".sh"; print "# line " FNR > out; want = 1; marked = 0; next }
    /^```(json|text)[ \t]*$/ && want { sub(/^```/, ""); sub(/[ \t]*$/, ""); out = dir n "." $0; printf "" > out; want = 0; next }
    /^```/                     { skip = 1; want = 0 }
    /^#/                       { want = 0 }
    /[^ \t]/ && marked         { print FILENAME ":" FNR ": <!-- ci --> is not right above a block to run" > "/dev/stderr"; exit 1 }
    END                        { print n + 0 > (dir "count") }
  ' "$1"
}

# run FILE DIR COUNT: the blocks, in one shell, so that a variable set in one is there
# in the next.
run() {
  local n rc as
  {
    echo 'set -euo pipefail'
    # What a failed block leaves running ends with the page.
    # shellcheck disable=SC2016 # it is for the page's shell
    echo 'trap '"'"'kill $(jobs -p) $(sed -sn 1p */postmaster.pid */pgdata/postmaster.pid 2>/dev/null) 2>/dev/null || true'"'"' EXIT'
    for ((n = 1; n <= $3; n++)); do
      printf 'echo %d >"%s/at"\n{\n' "$n" "$2"
      cat "$2/$n.sh"
      printf '} >"%s/%d.out"\n' "$2" "$n"
    done
  } >"$2/all.sh"
  as=()
  if [ "$1" = docs/operations.md ] && [ "$(id -u)" = 0 ]; then
    chown -R postgres "$2"
    as=(runuser -u postgres --)
  fi
  (cd "$2/files" && "${as[@]+"${as[@]}"}" bash ../all.sh </dev/null) || {
    rc=$?
    n=$(cat "$2/at")
    cat "$2/$n.sh" "$2/$n.out" >&2
    die "$1: this block failed with exit code $rc"
  }
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

blocks=0 failed=0 compared=0
# compare FILE DIR COUNT
compare() {
  local n kind want got
  for ((n = 1; n <= $3; n++)); do
    for kind in json text; do
      [ -f "$2/$n.$kind" ] || continue
      compared=$((compared + 1))
      want=$(squeeze $kind <"$2/$n.$kind" | sed 's/[][\\*?()|!+@]/\\&/g')
      got=$(squeeze $kind <"$2/$n.out")
      # shellcheck disable=SC2053 # the right side is a pattern on purpose
      [[ $got == ${want//…/*} ]] && continue
      failed=$((failed + 1))
      {
        printf '%s: a block does not print what follows it\n' "$1"
        cat "$2/$n.sh"
        printf -- '--- expected\n%s\n--- printed\n%s\n\n' "$(cat "$2/$n.$kind")" "$(cat "$2/$n.out")"
      } >&2
    done
  done
}

QUOTAD_LISTEN=127.0.0.1:$(free_port)
export QUOTAD_LISTEN QUOTAD_DATA_DIR=$all/data URL=http://$QUOTAD_LISTEN
bin/quotad serve --demo >"$all/log" 2>&1 </dev/null &
pid=$!
wait_ready "$URL" "$pid" "$all/log"
for file; do
  dir=$all/${file//\//-}.d
  extract "$file" "$dir"
  count=$(cat "$dir/count")
  [ "$count" -gt 0 ] || continue
  blocks=$((blocks + count))
  run "$file" "$dir" "$count"
  compare "$file" "$dir" "$count"
done
[ "$blocks" -gt 0 ] || die "no block is marked <!-- ci --> in $*"
say "$# files, $blocks blocks run, $compared compared, $failed differ"
[ "$failed" = 0 ]
