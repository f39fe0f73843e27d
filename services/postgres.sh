# shellcheck shell=bash
# What postgres18.sh and postgres15.sh share. They set PORT, BIN and MODULES before they use it.

sql() { psql -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$PORT" -U postgres -d "${2:-posthaste}" -c "$1"; }

# The cluster is made under another name and renamed, so that an interrupted initdb starts afresh.
# The database comes from single-user mode: the server then never runs without it.
create_cluster() {
  local new=$DATA/pgdata.new
  cd "$DATA" || exit # the service user may not be able to enter the caller's directory
  rm -rf "$new"
  as_service "$BIN/initdb" -D "$new" -U postgres -A trust -E UTF8 --locale=C
  echo "include 'posthaste.conf'" >>"$new/postgresql.conf"
  write_settings "$new"
  as_service "$BIN/postgres" --single -D "$new" -c shared_preload_libraries= postgres \
    <<<'create database posthaste'
  mv -T "$new" "$DATA/pgdata"
}

# - A file and not command-line options, so that ALTER SYSTEM can still change a setting in a test.
# - Connections for the tests of several packages at once, each with a few pools of its own. One that nobody opens costs
#   nothing but a place in tables.
# - Room to count the statements of all of them: a full table drops those that are seldom run, and proofs ask for some.
write_settings() {
  local preload=
  if [[ -e $MODULES/pg_stat_statements.so ]]; then preload=pg_stat_statements; fi
  cat >"$1/posthaste.conf" <<SETTINGS
listen_addresses = '127.0.0.1'
port = $PORT
unix_socket_directories = '$STATE_DIR/run/$NAME'
fsync = on
max_connections = 1000
max_prepared_transactions = 50
max_locks_per_transaction = 256
wal_level = logical
max_wal_size = 4GB
shared_buffers = 512MB
shared_preload_libraries = '$preload'
pg_stat_statements.max = 50000
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %q%u@%d %a '
SETTINGS
}

start() {
  own_directory "$STATE_DIR/run/$NAME"
  if [[ ! -d $DATA/pgdata ]]; then
    quietly "$LOG.initdb" "the data could not be made" create_cluster
  fi
  write_settings "$DATA/pgdata"
  launch "$NAME" "$BIN/postgres" -D "$DATA/pgdata"
}

ready() { [[ $(PGCONNECT_TIMEOUT=2 sql 'select 1') == 1 ]]; }

# SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for every client to leave.
stop() { terminate "$NAME" INT; }

address() { echo "127.0.0.1:$PORT"; }
dsn() { echo "postgres://postgres@127.0.0.1:$PORT/posthaste?sslmode=disable"; }
hint() { echo "is port $PORT taken (ss -ltnp)? 'services/services down --wipe $NAME' starts from empty data"; }

# check_major MAJOR: version, the settings that tests rely on, and one write that is rolled back.
check_major() {
  local number settings
  number=$(sql 'show server_version_num')
  expect "$1" "$((number / 10000))" "server version"
  settings=$(sql "select string_agg(setting, ' ' order by name collate \"C\") from pg_settings where name in
    ('fsync', 'max_connections', 'max_prepared_transactions', 'wal_level', 'TimeZone')")
  expect "UTC on 1000 50 logical" "$settings" "settings"
  expect "UTF8 C" "$(sql "select pg_encoding_to_char(encoding) || ' ' || datcollate
    from pg_database where datname = current_database()")" "encoding and locale"
  expect 42 "$(sql 'begin; create table services_check (n int); insert into services_check values (42);
    select n from services_check; rollback' | tail -n 1)" "write and read"
  echo "PostgreSQL $(sql 'show server_version')"
}
