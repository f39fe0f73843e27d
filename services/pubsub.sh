# shellcheck shell=bash
# Our own Pub/Sub emulator. It is code of this repository, so it is built again at each start.

tool=$TOOLS/pubsub-emulator

packages() { package curl curl; }
version() { echo "this checkout"; }
address() { echo "127.0.0.1:$PORT_PUBSUB"; }

install() {
  local began=$EPOCHREALTIME
  program go "install the Go version of go.mod"
  quietly "$STATE_DIR/log/$NAME-install.log" "test/cmd/pubsub-emulator does not build" patiently build
  row "$NAME" built "from test/cmd/pubsub-emulator ($(seconds_since "$began"))"
}

build() {
  cd "$repository/test" || exit
  go build -o "$tool" ./cmd/pubsub-emulator
}

start() {
  launch "$NAME" "$tool" -addr "$(address)" -fault-addr "127.0.0.1:$PORT_PUBSUB_FAULT" -dir "$DATA"
}

ready() { curl -sS --fail --max-time 2 "http://127.0.0.1:$PORT_PUBSUB_FAULT/healthz"; }
hint() { echo "is port $PORT_PUBSUB or $PORT_PUBSUB_FAULT taken (ss -ltnp)?"; }

# field NUMBER HEX: one length-delimited protobuf field, in hex. Lengths here stay below 128 bytes.
field() { printf '%02x%02x%s' $(($1 << 3 | 2)) $((${#2} / 2)) "$2"; }
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

# call METHOD HEX: the status of one gRPC call, made with curl, which saves installing a client.
call() {
  printf %b "$(printf '00%08x%s' $((${#2} / 2)) "$2" | sed 's/../\\x&/g')" |
    curl -sS --max-time 5 --http2-prior-knowledge -H 'Content-Type: application/grpc' -H 'TE: trailers' \
      --data-binary @- --output /dev/null --dump-header - \
      "http://$(address)/google.pubsub.v1.Publisher/$1" | tr -d '\r' | sed -n 's/^grpc-status: //p'
}

check() {
  local topic
  topic=$(hex "projects/services-check/topics/check-$$")
  expect 0 "$(call CreateTopic "$(field 1 "$topic")")" "gRPC status of CreateTopic"
  expect 0 "$(call Publish "$(field 1 "$topic")$(field 2 "$(field 1 "$(hex 42)")")")" \
    "gRPC status of Publish"
  expect 0 "$(call DeleteTopic "$(field 1 "$topic")")" "gRPC status of DeleteTopic"
  echo "Pub/Sub emulator"
}

exports() {
  echo "export SERVICES_PUBSUB_ADDR='$(address)'"
  echo "export SERVICES_PUBSUB_FAULT_URL='http://127.0.0.1:$PORT_PUBSUB_FAULT'"
}
