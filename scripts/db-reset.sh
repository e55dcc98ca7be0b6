#!/usr/bin/env bash
# Deletes the embedded server's data, with CONFIRM=yes: the next start makes it
# again. The data directory is $QUOTAD_DATA_DIR, else quotad's default.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# As DefaultDataDir in internal/postgres/embedded.
default_dir() {
  if [ "$(id -u)" = 0 ]; then echo /var/lib/quotad
  elif [ "$(uname)" = Darwin ]; then echo "$HOME/Library/Application Support/quotad"
  elif [[ ${XDG_DATA_HOME:-} == /* ]]; then echo "$XDG_DATA_HOME/quotad"
  else echo "$HOME/.local/share/quotad"
  fi
}

dir=${QUOTAD_DATA_DIR:-$(default_dir)}
data=$dir/pgdata
if ! [ -e "$data" ]; then
  say "nothing to delete: there is no $data"
  exit
fi
[ -f "$data/PG_VERSION" ] || die "$data holds no PostgreSQL data; delete it by hand if it may go"
pid=$(sed -n 1p "$data/postmaster.pid" 2>/dev/null || true)
if [ -n "$pid" ] && { [ -d "/proc/$pid" ] || kill -0 "$pid" 2>/dev/null; }; then
  die "the server of $data runs (process $pid); stop quotad first"
fi
[ "${CONFIRM:-}" = yes ] || die "this deletes $data for good: every plan, customer and charge in it. To do it: make db-reset CONFIRM=yes"
rm -rf "$data" "$data".init-*
say "deleted $data"
