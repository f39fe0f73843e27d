# shellcheck shell=bash
# PostgreSQL 15, the oldest version that we support, with Debian's binaries and data of our own.

PORT=$PORT_POSTGRES15
BIN=/usr/lib/postgresql/15/bin
MODULES=/usr/lib/postgresql/15/lib
source "$here/postgres.sh"

packages() { package "$BIN/postgres" postgresql-15; }
version() { debian_version postgresql-15; }
check() { check_major 15; }
exports() { echo "export SERVICES_POSTGRES15_URL='$(dsn)'"; }
