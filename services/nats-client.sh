# shellcheck shell=bash
# A client of NATS in the shell, which saves installing one. It speaks the text protocol on descriptor 3. Needs jq.

# nats_connect HOST PORT: answers arrive on a subject that nobody else has.
nats_connect() {
  nats_inbox=_INBOX.shell.$$.$RANDOM$RANDOM
  { exec 3<>"/dev/tcp/$1/$2"; } 2>/dev/null || { echo "NATS: nobody listens on $1:$2" >&2; return 1; }
  printf 'CONNECT {"verbose":false}\r\nSUB %s 1\r\n' "$nats_inbox" >&3
}

# nats_request SUBJECT BODY: one request and its answer, or a failure that says why there is none. Lengths are in bytes,
# hence the locale.
nats_request() {
  local line length LC_ALL=C
  printf 'PUB %s %s %d\r\n%s\r\n' "$1" "$nats_inbox" "${#2}" "$2" >&3
  while IFS= read -r -t 30 -u 3 line; do
    line=${line%$'\r'}
    case $line in
      PING) printf 'PONG\r\n' >&3 ;;
      -ERR*) echo "NATS: $1: $line" >&2; return 1 ;;
      MSG*)
        length=${line##* }
        IFS= read -r -t 30 -u 3 -N "$length" line
        echo "$line"
        return
        ;;
    esac
  done
  echo "NATS: no answer to $1" >&2
  return 1
}

# nats_api SUBJECT BODY: an answer of JetStream, or a failure that says what was wrong.
nats_api() {
  local answer problem
  answer=$(nats_request "\$JS.API.$1" "$2") || return 1
  problem=$(jq -r '.error.description // empty' <<<"$answer")
  [[ -z $problem ]] || { echo "NATS: $1: $problem" >&2; return 1; }
  echo "$answer"
}

# nats_stream_of TOPIC: the name of the stream that takes a topic; nothing if there is none.
nats_stream_of() { nats_api STREAM.NAMES "{\"subject\":\"$1\"}" | jq -r '.streams // [] | first // empty'; }

# nats_ensure_stream NAME TOPIC...: makes a stream of the topics that none takes, or adds them to the one of this name.
nats_ensure_stream() {
  local stream=$1 topic missing=() answer settings verb=CREATE
  for topic in "${@:2}"; do
    [[ -n $(nats_stream_of "$topic") ]] || missing+=("$topic")
  done
  ((${#missing[@]} > 0)) || return 0
  settings="{\"name\":\"$stream\",\"subjects\":[],\"storage\":\"file\"}"
  answer=$(nats_request "\$JS.API.STREAM.INFO.$stream" '')
  if jq -e .config <<<"$answer" >/dev/null; then
    settings=$(jq -c .config <<<"$answer") verb=UPDATE
  fi
  settings=$(jq -c '.subjects += $ARGS.positional' --args "${missing[@]}" <<<"$settings")
  nats_api "STREAM.$verb.$stream" "$settings" >/dev/null
}
