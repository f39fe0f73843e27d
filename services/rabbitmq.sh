# shellcheck shell=bash
# RabbitMQ with Debian's programs, but with its own node name, directories and ports, so that Debian's
# default node can exist beside it. Log in as guest/guest.

packages() {
  package /usr/lib/rabbitmq/bin/rabbitmq-server rabbitmq-server
  package curl curl
  package jq jq
}
version() { debian_version rabbitmq-server; }
address() { echo "127.0.0.1:$PORT_RABBITMQ"; }

write_settings() {
  echo '[rabbitmq_management].' >"$DATA/enabled_plugins"
  cat >"$DATA/rabbitmq.conf" <<SETTINGS
listeners.tcp.1 = 127.0.0.1:$PORT_RABBITMQ
management.tcp.ip = 127.0.0.1
management.tcp.port = $PORT_RABBITMQ_MANAGEMENT
log.console = true
log.console.level = info
log.file = false
SETTINGS
}

# Erlang's name server (epmd) is started here and not by the node, which would leave it running after
# the node's end, listening on every interface.
start() {
  write_settings
  if ! pid_of "$NAME-epmd" >/dev/null; then
    launch "$NAME-epmd" "$(command -v epmd)" -address 127.0.0.1 -port "$PORT_RABBITMQ_EPMD"
  fi
  launch "$NAME" \
    ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$PORT_RABBITMQ_EPMD" \
    RABBITMQ_NODENAME=posthaste@localhost \
    RABBITMQ_DIST_PORT="$PORT_RABBITMQ_DIST" \
    RABBITMQ_CONF_ENV_FILE=/dev/null \
    RABBITMQ_CONFIG_FILE="$DATA/rabbitmq.conf" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$DATA/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$DATA/mnesia" \
    RABBITMQ_LOG_BASE="$DATA/log" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}' \
    /usr/lib/rabbitmq/bin/rabbitmq-server
}

stop() {
  terminate "$NAME"
  terminate "$NAME-epmd"
}

api() {
  curl -sS --fail --max-time 5 -u guest:guest -X "$1" -H 'Content-Type: application/json' \
    "http://127.0.0.1:$PORT_RABBITMQ_MANAGEMENT/api/$2" "${@:3}"
}
ready() { [[ $(api GET "health/checks/port-listener/$PORT_RABBITMQ" | jq -r .status) == ok ]]; }
hint() { echo "is one of the ports taken (ss -ltnp)? 'services/services down --wipe $NAME' starts from empty data"; }

check() {
  local queue=posthaste-services-check answer
  api DELETE "queues/%2F/$queue" >/dev/null 2>&1 || true # left by a check that failed half-way
  api PUT "queues/%2F/$queue" -d '{"durable":true}'
  answer=$(api POST exchanges/%2F/amq.default/publish -d \
    "{\"routing_key\":\"$queue\",\"payload\":\"42\",\"payload_encoding\":\"string\",\"properties\":{}}")
  expect true "$(jq .routed <<<"$answer")" "publishing"
  answer=$(api POST "queues/%2F/$queue/get" -d '{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}')
  expect 42 "$(jq -r '.[0].payload' <<<"$answer")" "the message read back"
  api DELETE "queues/%2F/$queue"
  echo "RabbitMQ $(api GET overview | jq -r .rabbitmq_version)"
}

exports() {
  echo "export SERVICES_RABBITMQ_URL='amqp://guest:guest@$(address)/'"
  echo "export SERVICES_RABBITMQ_MANAGEMENT_URL='http://guest:guest@127.0.0.1:$PORT_RABBITMQ_MANAGEMENT'"
}
