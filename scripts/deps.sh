#!/usr/bin/env bash
# Sees to what the targets need, named as arguments: go, postgres, cc, curl,
# node, npm, chromium, python, shellcheck, wrk, redis, pgbouncer, promtool, gateways, faketime. What is there is left alone. On Debian and Ubuntu the
# rest is installed with apt; elsewhere this says what to install, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

oldest=15 # the oldest PostgreSQL that quotad supports

# as_root COMMAND...: by sudo unless we are root.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

can_be_root() {
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || [ -t 0 ] # a terminal can ask for the password
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2; }

# An old package list leads to files that are gone: refresh it once, and only
# when there is none or an installation failed.
updated=
apt_update() { [ -n "$updated" ] || apt_get update; updated=1; }
apt_candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: *//p' | grep -v '^(none)$'; }

apt_install() {
  say "installing $*"
  for name; do apt_candidate "$name" >/dev/null || apt_update; done
  apt_get install -y --no-install-recommends "$@" && return
  [ -z "$updated" ] && apt_update && apt_get install -y --no-install-recommends "$@"
}

# need WHAT BREW DNF APT...: installs the APT packages or says what to do.
need() {
  local what=$1 brew=$2 dnf=$3
  shift 3
  if command -v apt-get >/dev/null; then
    can_be_root || die "$what is missing, and neither root nor sudo is at hand. As root: apt-get update && apt-get install -y --no-install-recommends $*"
    apt_install "$@" || die "apt could not install $*"
  elif command -v brew >/dev/null; then die "$what is missing. Install it: $brew"
  elif command -v dnf >/dev/null; then die "$what is missing. Install it: sudo dnf install $dnf"
  else die "$what is missing, and this system has neither apt, brew nor dnf. Install it by hand."
  fi
}

dep_go() {
  local want out
  want=$(sed -n 's/^go //p' go.mod)
  if ! command -v go >/dev/null; then
    [ -x /usr/local/go/bin/go ] && die 'Go is in /usr/local/go/bin, which is not on PATH: add it.'
    die "Go is not on PATH. quotad needs Go $want or newer."
  fi
  # Go 1.21 and newer fetch the version that go.mod asks for, where they may.
  out=$(GOFLAGS='' go list -m 2>&1) && return
  say "$out"
  die "quotad needs Go $want or newer; this is $(cd / && go env GOVERSION)."
}

# pg_major DIR: the version of PostgreSQL's programs in DIR, if they are there.
pg_major() {
  [ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return
  "$1/postgres" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p'
}

# The places where quotad looks: placesToLook in internal/postgres/embedded.
pg_dirs() {
  local IFS=: brew
  # shellcheck disable=SC2086 # split PATH at its colons
  printf '%s\n' $PATH /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/lib64/pgsql/bin \
    /usr/libexec/postgresql* /usr/local/pgsql/bin
  for brew in /opt/homebrew /usr/local /home/linuxbrew/.linuxbrew; do
    printf '%s\n' "$brew"/opt/postgresql/bin "$brew"/opt/postgresql@*/bin
  done
}

has_postgres() {
  local dir major
  while read -r dir; do
    major=$(pg_major "$dir") || continue
    [ "${major:-0}" -ge "$oldest" ] && return
  done < <(pg_dirs)
  return 1
}

# Debian's package makes and starts a server of its own. quotad wants only the
# programs, so that is switched off while the package is being installed.
dep_postgres() {
  local major drop=/etc/postgresql-common/createcluster.d/quotad.conf
  if [ -n "${PGBIN:-}" ]; then
    major=$(pg_major "$PGBIN") || die "PGBIN=$PGBIN does not hold postgres and initdb"
    [ "${major:-0}" -ge "$oldest" ] || die "PGBIN=$PGBIN is PostgreSQL ${major:-?}; quotad needs $oldest or newer"
    return
  fi
  has_postgres && return
  if command -v apt-get >/dev/null && can_be_root; then
    apt_candidate postgresql >/dev/null || apt_update
    major=$(apt_candidate postgresql | sed 's/[^0-9].*//')
    [ "${major:-0}" -ge "$oldest" ] ||
      die "this system's PostgreSQL is ${major:-unknown}; quotad needs $oldest or newer. Install one from the PostgreSQL project's own packages, or set PGBIN=dir."
    as_root mkdir -p "${drop%/*}"
    echo 'create_main_cluster = false' | as_root tee "$drop" >/dev/null
    # shellcheck disable=SC2064 # the path is final
    trap "as_root rm -f $drop" EXIT
  fi
  need "PostgreSQL $oldest or newer (initdb, postgres)" 'brew install postgresql@17' 'postgresql-server postgresql-contrib' postgresql
  has_postgres || die 'PostgreSQL was installed, but its programs were not found; set PGBIN=dir'
}

# The race detector links with C: a compiler and the C library's headers.
dep_cc() {
  local cc
  cc=$(go env CC)
  # shellcheck disable=SC2086 # CC may hold flags
  echo '#include <stdlib.h>' | $cc -x c -E - >/dev/null 2>&1 && return
  need 'a C compiler (for go test -race)' 'xcode-select --install' 'gcc glibc-devel' gcc libc6-dev
}

dep_curl() { command -v curl >/dev/null || need curl 'brew install curl' curl curl; }
dep_python() { command -v python3 >/dev/null || need 'Python 3' 'brew install python' python3 python3; }
dep_shellcheck() { command -v shellcheck >/dev/null || need shellcheck 'brew install shellcheck' ShellCheck shellcheck; }
dep_wrk() { command -v wrk >/dev/null || need wrk 'brew install wrk' wrk wrk; }
# Debian's redis-server starts a server of its own; redis-tools holds the same program,
# which tells what it is to do from the name that it is called by.
dep_redis() {
  if command -v redis-server >/dev/null || command -v redis-check-rdb >/dev/null; then return; fi
  need redis-server 'brew install redis' redis redis-tools
}
# Debian's package may start a pooler of its own on 127.0.0.1:6432, which has no database.
# Tests start theirs on ports of their own. /usr/sbin is not on the path of every user.
dep_pgbouncer() {
  PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || need PgBouncer 'brew install pgbouncer' pgbouncer pgbouncer
}
# Debian's package has the server, too, and may start it on port 9090. Only promtool is needed.
dep_promtool() { command -v promtool >/dev/null || need promtool 'brew install prometheus' golang-github-prometheus prometheus; }
# Debian's packages may start servers of their own, on ports 80 and 8080. Tests start theirs on ports of
# their own.
dep_gateways() {
  local name
  for name in nginx haproxy caddy; do
    PATH=$PATH:/usr/sbin command -v "$name" >/dev/null || need "$name" "brew install $name" "$name" "$name"
  done
}
# The library alone, which steps the clock of a server. The places are those of internal/testkit/pgtest.
dep_faketime() {
  compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || compgen -G '/usr/lib*/faketime/libfaketime.so.1' >/dev/null ||
    compgen -G '/usr/local/lib/faketime/libfaketime.so.1' >/dev/null ||
    need libfaketime 'brew install libfaketime' libfaketime libfaketime
}
dep_node() {
  if command -v node >/dev/null && command -v npm >/dev/null; then return; fi
  need 'Node.js with npm' 'brew install node' 'nodejs npm' nodejs npm
}

# The packages that package-lock.json names, by their hashes. They run nothing at their installation.
dep_npm() {
  dep_node
  cmp -s package-lock.json node_modules/.quotad-lock && return
  npm ci --ignore-scripts --no-audit --no-fund >&2 || die 'npm could not install the packages of package-lock.json'
  cp package-lock.json node_modules/.quotad-lock
}
# Debian has a browser that shows no windows, and is quicker. Ubuntu does not have it.
dep_chromium() {
  local name package=chromium
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && return
  done
  if command -v apt-get >/dev/null; then
    apt_candidate chromium >/dev/null || ! can_be_root || apt_update
    ! apt_candidate chromium-headless-shell >/dev/null || package=chromium-headless-shell
  fi
  need Chromium 'brew install --cask chromium' chromium "$package"
}

for dep; do
  case $dep in
    go | postgres | cc | curl | node | npm | chromium | python | shellcheck | wrk | redis | pgbouncer | promtool | gateways | faketime) "dep_$dep" ;;
    *) die "unknown: $dep" ;;
  esac
done
