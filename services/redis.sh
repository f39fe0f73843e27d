# shellcheck shell=bash
# Redis without persistence: a restart is an empty server. It refuses writes when memory is short
# (noeviction), so that a test never loses a key without an error.

packages() { package redis-server redis-server; }
version() { debian_version redis-server; }
address() { echo "127.0.0.1:$PORT_REDIS"; }

start() {
  launch "$NAME" redis-server --bind 127.0.0.1 --port "$PORT_REDIS" --save '' --appendonly no \
    --maxmemory-policy noeviction --daemonize no --dir "$DATA"
}

client() { redis-cli -h 127.0.0.1 -p "$PORT_REDIS" "$@"; }
ready() { [[ $(client ping) == PONG ]]; }
hint() { echo "is port $PORT_REDIS taken (ss -ltnp)?"; }

check() {
  local key=posthaste:services-check
  expect OK "$(client set $key 42 ex 60)" SET
  expect 42 "$(client get $key)" GET
  expect 1 "$(client del $key)" DEL
  expect noeviction "$(client config get maxmemory-policy | tail -n 1)" maxmemory-policy
  echo "Redis $(client info server | tr -d '\r' | sed -n 's/^redis_version://p')"
}

exports() { echo "export SERVICES_REDIS_ADDR='$(address)'"; }
