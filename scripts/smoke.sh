#!/usr/bin/env bash
# Does what a new user does: `make run`, then pastes the curl line it prints.
# It runs on a free port and a data directory of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/deps.sh curl

dir=$(temp_dir smoke)
log=$dir/log
pid=
cleanup() {
  [ -z "$pid" ] || stop_server "$pid" || true
  rm -rf "$dir"
}
trap cleanup EXIT

# The first start makes the key and the demo; nothing of ours may be set.
for name in $(compgen -e QUOTAD_ || true); do unset "$name"; done
QUOTAD_LISTEN=127.0.0.1:$(free_port)
export QUOTAD_LISTEN QUOTAD_DATA_DIR=$dir/data

make --no-print-directory run >"$log" 2>&1 </dev/null &
pid=$!
# The build comes first, and may take minutes on a cold cache.
for ((i = 0; i < 1500; i++)); do
  kill -0 "$pid" 2>/dev/null || { cat "$log" >&2; die 'make run ended'; }
  (: <"/dev/tcp/${QUOTAD_LISTEN/://}") 2>/dev/null && break
  sleep 0.2
done
wait_ready "http://$QUOTAD_LISTEN" "$pid" "$log"

# The line to paste, with the lines that it continues on.
line=$(awk '/^[ \t]*curl /{ on = 1 } on { print } on && !/\\[ \t]*$/{ exit }' "$log")
[ -n "$line" ] || { cat "$log" >&2; die 'make run printed no curl line'; }
answer=$(bash -c "$line" 2>/dev/null) || die "the curl line failed: $line"
[[ ${answer//[[:space:]]/} == *'"allowed":true'* ]] || die "not an admitted hit: $answer"

stop_server "$pid" || die 'make run did not stop'
pid=
# PostgreSQL removes its pid file when it is stopped in order.
[ -z "$(find "$dir/data" -name postmaster.pid)" ] || die 'PostgreSQL was not stopped with quotad'
say 'smoke: make run serves, its curl line is admitted, and it stops with its PostgreSQL'
