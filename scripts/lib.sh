# shellcheck shell=bash
# What the scripts share; source it. The shell is bash 3.2 or newer (macOS).

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# temp_dir: a new directory that PostgreSQL's unprivileged user can reach when
# we are root: TMPDIR may be private, /tmp is not.
temp_dir() {
  local dir
  dir=$(mktemp -d "/tmp/quotad-${1:-tmp}.XXXXXX")
  chmod 0755 "$dir"
  printf '%s\n' "$dir"
}

# free_port: a port of 127.0.0.1 on which nobody listens, below the range
# from which systems draw ports for outgoing connections.
free_port() {
  local port
  for _ in $(seq 50); do
    port=$((20000 + RANDOM % 10000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  die 'no free port found'
}

# wait_ready URL PID LOG: until /readyz answers 200, at most two minutes.
wait_ready() {
  local i
  for ((i = 0; i < 600; i++)); do
    curl -fs -o /dev/null --max-time 2 "$1/readyz" && return
    kill -0 "$2" 2>/dev/null || { cat "$3" >&2; die 'the server ended before it was ready'; }
    sleep 0.2
  done
  cat "$3" >&2
  die "no 200 from $1/readyz within two minutes"
}

# stop_server PID: ask it to stop; fail when it has not within a minute.
stop_server() {
  local i
  kill -TERM "$1" 2>/dev/null || return 0
  for ((i = 0; i < 300; i++)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.2
  done
  kill -KILL "$1" 2>/dev/null
  say 'the server did not stop within a minute'
  return 1
}
