# shellcheck shell=bash
# What `make run-outbox-publisher` and `make example-event` share: where the servers are. Those of services/services,
# unless POSTHASTE_DATABASE_URL and POSTHASTE_NATS_URL name others.

# shellcheck source=services/nats-client.sh
. services/nats-client.sh

registry=examples/registry.yaml

# address NAME VARIABLE: what services/services says of a server.
address() { (eval "$(services/services env "$1")" && echo "${!2}"); }
local_database=$(address postgres18 SERVICES_POSTGRES18_URL)
local_nats=$(address nats SERVICES_NATS_URL)
: "${POSTHASTE_DATABASE_URL:=$local_database}" "${POSTHASTE_NATS_URL:=$local_nats}"
export POSTHASTE_DATABASE_URL POSTHASTE_NATS_URL

# topics: those of the registry.
topics() { grep -oE 'topic: *[A-Za-z0-9_.-]+' "$registry" | sed 's/.*[ :]//' | sort -u; }

# connect_nats: descriptor 3 leads to the server. A server with TLS or a password has clients of its own.
connect_nats() {
	[[ $POSTHASTE_NATS_URL =~ ^nats://([A-Za-z0-9.-]+):([0-9]+)/?$ ]] || {
		echo "POSTHASTE_NATS_URL: this script speaks with nats://HOST:PORT alone; use the client nats" >&2
		return 1
	}
	nats_connect "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
}
