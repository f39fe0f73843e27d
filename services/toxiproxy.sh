# shellcheck shell=bash
# Toxiproxy breaks connections on purpose. Tests make their own proxies through its API.

tool=$TOOLS/toxiproxy-$VERSION_TOXIPROXY

packages() {
  package curl curl
  package jq jq
}
install() { go_tool "$tool" "github.com/Shopify/toxiproxy/v2/cmd/server"; }
version() { echo "$VERSION_TOXIPROXY"; }
address() { echo "127.0.0.1:$PORT_TOXIPROXY"; }

start() { launch "$NAME" "$tool/server" -host 127.0.0.1 -port "$PORT_TOXIPROXY"; }

api() { curl -sS --fail --max-time 5 -X "$1" "http://$(address)/$2" "${@:3}"; }
ready() { api GET version; }
hint() { echo "is port $PORT_TOXIPROXY taken (ss -ltnp)?"; }

# The proxy leads to Toxiproxy's own API: a check of one server must not need another.
check() {
  local proxy=posthaste-services-check listen
  api DELETE "proxies/$proxy" >/dev/null 2>&1 || true
  listen=$(api POST proxies -d "{\"name\":\"$proxy\",\"listen\":\"127.0.0.1:0\",\"upstream\":\"$(address)\"}" |
    jq -r .listen)
  curl -sS --fail --max-time 5 "http://$listen/version" >/dev/null
  api DELETE "proxies/$proxy" >/dev/null
  echo "Toxiproxy $VERSION_TOXIPROXY"
}

exports() { echo "export SERVICES_TOXIPROXY_URL='http://$(address)'"; }
