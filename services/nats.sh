# shellcheck shell=bash
# NATS with JetStream, built from its Go module: Debian's 2.9 is too old for JetStream's newer API.

tool=$TOOLS/nats-server-$VERSION_NATS

install() { go_tool "$tool" "github.com/nats-io/nats-server/v2@$VERSION_NATS"; }
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

# request SUBJECT BODY: one request and its answer in the NATS text protocol on descriptor 3, which
# saves installing a client. Answers arrive on the subscription that check makes.
request() {
  local line length
  printf 'PUB %s inbox %d\r\n%s\r\n' "$1" "${#2}" "$2" >&3
  while IFS= read -r -t 5 -u 3 line; do
    line=${line%$'\r'}
    case $line in
      PING) printf 'PONG\r\n' >&3 ;;
      -ERR*) echo "$line"; return 1 ;;
      MSG*)
        length=${line##* }
        IFS= read -r -t 5 -u 3 -N "$length" line
        echo "$line"
        return
        ;;
    esac
  done
  echo "no answer to $1"
  return 1
}

check() {
  local stream=posthaste_services_check answer
  exec 3<>"/dev/tcp/127.0.0.1/$PORT_NATS"
  printf 'CONNECT {"verbose":false}\r\nSUB inbox 1\r\n' >&3
  request "\$JS.API.STREAM.DELETE.$stream" '' >/dev/null
  answer=$(request "\$JS.API.STREAM.CREATE.$stream" \
    "{\"name\":\"$stream\",\"subjects\":[\"$stream\"],\"storage\":\"file\"}")
  expect null "$(jq -c .error <<<"$answer")" "creating a stream"
  answer=$(request "$stream" 42)
  expect 1 "$(jq .seq <<<"$answer")" "the acknowledgement of a publish"
  answer=$(request "\$JS.API.STREAM.MSG.GET.$stream" '{"seq":1}')
  expect 42 "$(jq -r '.message.data | @base64d' <<<"$answer")" "reading it back"
  answer=$(request "\$JS.API.STREAM.DELETE.$stream" '')
  expect true "$(jq .success <<<"$answer")" "deleting the stream"
  echo "NATS $(monitor varz | jq -r .version) with JetStream"
}

exports() { echo "export POSTHASTE_NATS_URL='nats://$(address)'"; }
