# shellcheck shell=bash
# PgBouncer in transaction mode. Debian's 1.18 has no prepared-statement support (1.21 has), which is
# the hard case for a client library.

requires() { echo postgres18 postgres15; }
packages() {
  package pgbouncer pgbouncer
  package psql postgresql-client-15
}
version() { debian_version pgbouncer; }
address() { echo "127.0.0.1:$PORT_PGBOUNCER"; }

start() {
  own_directory "$STATE_DIR/run/$NAME"
  write_settings
  launch "$NAME" "$(command -v pgbouncer)" "$DATA/pgbouncer.ini"
}

# - auth_query lets every role that the server has log in under its own name; "auth_type = any" would
#   make everybody the superuser, and a test of privileges would pass without testing.
# - A startup parameter that PgBouncer cannot keep per client (search_path) stays an error: ignored, it
#   would make queries run against the wrong schema.
# - A pool has room for all transactions that tests of several packages have open at once: some wait for another client
#   of the same pool, and with too little room all of them would.
# - Idle connections go after 10 s, so that they do not keep a test's database from being dropped.
write_settings() {
  echo '"postgres" ""' >"$DATA/users.txt"
  cat >"$DATA/pgbouncer.ini" <<SETTINGS
[databases]
posthaste = host=127.0.0.1 port=$PORT_POSTGRES18
posthaste15 = host=127.0.0.1 port=$PORT_POSTGRES15 dbname=posthaste
* = host=127.0.0.1 port=$PORT_POSTGRES18

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $PORT_PGBOUNCER
unix_socket_dir = $STATE_DIR/run/$NAME
auth_type = trust
auth_file = $DATA/users.txt
auth_user = postgres
auth_query = select rolname, '' from pg_catalog.pg_roles where rolname = \$1
admin_users = postgres
pool_mode = transaction
default_pool_size = 100
max_client_conn = 2000
ignore_startup_parameters = extra_float_digits
server_idle_timeout = 10
autodb_idle_timeout = 10
SETTINGS
}

sql() { psql -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$PORT_PGBOUNCER" -U postgres -d "$1" -c "$2"; }

setting() { sql pgbouncer 'show config' | awk -F '|' -v name="$1" '$1 == name { print $2 }'; }

ready() { PGCONNECT_TIMEOUT=2 sql pgbouncer 'show version'; }

hint() { echo "is port $PORT_PGBOUNCER taken (ss -ltnp)?"; }

check() {
  expect transaction "$(setting pool_mode)" pool_mode
  expect extra_float_digits "$(setting ignore_startup_parameters)" ignore_startup_parameters
  expect 18 "$(sql posthaste "select current_setting('server_version_num')::int / 10000")" "database posthaste"
  expect 15 "$(sql posthaste15 "select current_setting('server_version_num')::int / 10000")" "database posthaste15"
  expect postgres "$(sql postgres 'select current_database()')" "a database without an entry"
  sql pgbouncer 'show version'
}

exports() {
  local base=postgres://postgres@127.0.0.1:$PORT_PGBOUNCER
  echo "export SERVICES_PGBOUNCER_URL='$base/posthaste?sslmode=disable'"
  echo "export SERVICES_PGBOUNCER15_URL='$base/posthaste15?sslmode=disable'"
}
