# shellcheck shell=bash
# NATS with JetStream, built from its Go module: Debian's 2.9 is too old for JetStream's newer API.

# shellcheck source=services/nats-client.sh
source "$here/nats-client.sh"

tool=$TOOLS/nats-server-$VERSION_NATS

install() { go_tool "$tool" "github.com/nats-io/nats-server/v2"; }
packages() {
  package curl curl
  package jq jq
}
version() { echo "$VERSION_NATS"; }
address() { echo "127.0.0.1:$PORT_NATS"; }

start() {
  launch "$NAME" "$tool/nats-server" --addr 127.0.0.1 --port "$PORT_NATS" \
    --http_port "$PORT_NATS_MONITOR" --jetstream --store_dir "$DATA"
}

monitor() { curl -sS --fail --max-time 5 "http://127.0.0.1:$PORT_NATS_MONITOR/$1"; }
ready() { [[ $(monitor healthz) == *'"ok"'* ]]; }
hint() { echo "is port $PORT_NATS or $PORT_NATS_MONITOR taken (ss -ltnp)?"; }

check() {
  local stream=posthaste_services_check answer
  nats_connect 127.0.0.1 "$PORT_NATS"
  nats_request "\$JS.API.STREAM.DELETE.$stream" '' >/dev/null
  answer=$(nats_request "\$JS.API.STREAM.CREATE.$stream" \
    "{\"name\":\"$stream\",\"subjects\":[\"$stream\"],\"storage\":\"file\"}")
  expect null "$(jq -c .error <<<"$answer")" "creating a stream"
  answer=$(nats_request "$stream" 42)
  expect 1 "$(jq .seq <<<"$answer")" "the acknowledgement of a publish"
  answer=$(nats_request "\$JS.API.STREAM.MSG.GET.$stream" '{"seq":1}')
  expect 42 "$(jq -r '.message.data | @base64d' <<<"$answer")" "reading it back"
  answer=$(nats_request "\$JS.API.STREAM.DELETE.$stream" '')
  expect true "$(jq .success <<<"$answer")" "deleting the stream"
  echo "NATS $(monitor varz | jq -r .version) with JetStream"
}

exports() { echo "export SERVICES_NATS_URL='nats://$(address)'"; }
