# Everything a person types; `make` alone lists it. The work is in scripts/, services/ and test/cmd/.
.DEFAULT_GOAL := help
SHELL := bash

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

services: ## Install and start the real servers on loopback (S="postgres18 nats" for some of them)
	@services/services up $(S)
services-status: ## Show which servers run, and where
	@services/services status $(S)
services-check: ## Do one real round trip with every server
	@services/services check $(S)
services-down: ## Stop the servers (S="..." for some of them)
	@services/services down $(S)

build: ## Build every module; the commands go to bin/
	@scripts/build
test: ## Run every test against PostgreSQL 18 and 15, and check docs/conformance.md (P=./test/emit for one package)
	@scripts/test $(P)
examples: ## Run the producers in Python, Node.js, Rust and SQL (L="python sql" for some of them)
	@examples/run $(L)
lint: ## Run the linters over every module and script
	@scripts/lint
format: ## Format every module
	@scripts/format
tidy: ## go mod tidy in every module
	@scripts/tidy
check-deps: ## Count the modules that a user's build sees
	@scripts/check-deps
check-deploy: services-postgres ## Check what people deploy with: image, compose, Helm chart, Heroku, systemd (needs Helm, which it builds)
	@services/services up nats >/dev/null
	@scripts/check-deploy
check-alerts: ## Test the alert rules with promtool, which it builds, and read the dashboard's expressions
	@scripts/check-alerts
vulncheck: ## Look for known vulnerabilities
	@scripts/vulncheck

run-outbox-publisher: services-postgres ## Run outbox-publisher with examples/registry.yaml against the local PostgreSQL and NATS
	@services/services up nats >/dev/null
	@mkdir -p bin && go build -trimpath -o bin/ ./cmd/...
	@bin/outboxctl migrate up --database-url $${POSTHASTE_DATABASE_URL:-postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable}
	@POSTHASTE_DATABASE_URL=$${POSTHASTE_DATABASE_URL:-postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable} \
	POSTHASTE_BROKER=nats POSTHASTE_NATS_URL=$${POSTHASTE_NATS_URL:-nats://127.0.0.1:14222} \
	POSTHASTE_REGISTRY_FILE=examples/registry.yaml bin/outbox-publisher

marketplace: services-postgres ## Run the reference application on the local servers: API, publishers, workers, load (ARGS="--broker pubsub --stay")
	@services/services up nats pubsub redis >/dev/null
	@examples/marketplace/run $(ARGS)

proof-emit: services-postgres ## Prove the emit side: faults, hostile inputs, races
	@go run ./test/cmd/proof-emit
bench-emit: services-postgres ## Measure what an emit costs, as ratios (LONG=1 for the long form)
	@go run ./test/cmd/bench-emit $(if $(LONG),-long)

proof-sim: ## Prove the relay's core in simulated time: thousands of worlds with faults (SHORT=1 for fewer)
	@go run ./relay/internal/sim/proof-sim $(if $(SHORT),-short)
proof-model: services-postgres ## Prove that PostgreSQL and the model do the same, action by action (SHORT=1 for fewer)
	@go run ./relay/internal/modeltest/proof-model $(if $(SHORT),-sequences 60)
proof-order: services-postgres ## Prove the order: relays that join, leave and die between PostgreSQL and NATS (SHORT=1 for fewer events)
	@services/services up nats >/dev/null
	@go run ./test/cmd/proof-order $(if $(SHORT),-short)
proof-crash: services-postgres ## Prove every crash point: a process kills itself there, another takes over (SHORT=1 for fewer events)
	@services/services up nats >/dev/null
	@go run -tags crash ./test/cmd/proof-crash $(if $(SHORT),-short)
proof-chaos: services ## Prove it under chaos: kills, restarts, cuts, outages, wrong clocks (SHORT=1; DURATION=30m for the long form)
	@go run ./test/cmd/proof-chaos $(if $(SHORT),-short) $(if $(DURATION),-duration $(DURATION))
proof-failover: services-postgres ## Prove failover, crash recovery and restore between clusters of its own (SHORT=1 for less)
	@services/services up nats >/dev/null
	@go run ./test/cmd/proof-failover $(if $(SHORT),-short)
proof-hostile: services-postgres ## Prove hostile inputs through the whole path, to NATS and Pub/Sub
	@services/services up nats pubsub >/dev/null
	@go run ./test/cmd/proof-hostile
proof-inbox: services-postgres ## Prove the inboxes: consumers killed at every point, copies at the same moment, Redis that dies and forgets (SHORT=1 for fewer events)
	@services/services up nats redis >/dev/null
	@go run -tags crash ./test/cmd/proof-inbox $(if $(SHORT),-short)
proof-planted: services-postgres ## Prove the proofs: every planted bug is caught by the cheapest of them
	@services/services up nats pubsub redis >/dev/null
	@go run ./test/cmd/proof-planted
proof-retention: services-postgres ## Prove that retention removes what is settled and hurts nobody (SHORT=1 for less)
	@go run ./test/cmd/proof-retention $(if $(SHORT),-short)
proof-publisher: services-postgres publisher-binaries ## Prove outbox-publisher: psql to NATS, restarts of everything, an outage with 20,000 events waiting (SHORT=1 for less)
	@services/services up nats >/dev/null
	@go run ./test/cmd/proof-publisher $(if $(SHORT),-short)
proof-drain-stop: services-postgres publisher-binaries ## Prove that a stopped publisher loses and repeats nothing, a hundred times (SHORT=1 for ten)
	@services/services up nats >/dev/null
	@go run ./test/cmd/proof-drain-stop $(if $(SHORT),-short)
proof-leaks: services-postgres publisher-binaries ## Prove that no log, metric, trace, answer or error shows a secret or personal data (SHORT=1 for less)
	@services/services up nats >/dev/null
	@go run ./test/cmd/proof-leaks $(if $(SHORT),-short)
proof-marketplace: services-postgres ## Prove the whole marketplace: API, publishers and workers killed under load, over NATS and Pub/Sub, with both inboxes (SHORT=1 for less)
	@services/services up nats redis >/dev/null
	@mkdir -p bin/marketplace && go build -trimpath -o bin/marketplace/ ./examples/marketplace/cmd/...
	@go run ./test/cmd/proof-marketplace $(if $(SHORT),-short)
fuzz: services-postgres ## Fuzz every target (SECONDS=10 each)
	@scripts/fuzz $(SECONDS)
bench-inbox: services-postgres ## Measure what the inbox adds to a consumer's transaction, as ratios
	@go run ./test/cmd/bench-inbox
bench-pinned: services-postgres ## Measure the relay under a held snapshot and an open writer (SHORT=1, LONG=1 for half an hour each)
	@go run ./test/cmd/bench-pinned $(if $(LONG),-long) $(if $(SHORT),-seconds 20 -dead 200000)
bench-drain: services-postgres ## Measure how fast the relay drains a backlog, as ratios (LONG=1 for the long form)
	@services/services up nats >/dev/null
	@go run ./test/cmd/bench-drain $(if $(LONG),-long)

ci: ## Run what CI runs
	@.ci/run

publisher-binaries:
	@mkdir -p bin && go build -trimpath -o bin/ ./cmd/...

services-postgres:
	@services/services up postgres18 postgres15 pgbouncer >/dev/null

.PHONY: run-outbox-publisher marketplace help services services-status services-check services-down build test examples lint format tidy check-deps check-deploy check-alerts vulncheck proof-emit bench-emit proof-sim proof-model proof-order proof-crash proof-chaos proof-failover proof-hostile proof-inbox proof-planted proof-retention proof-publisher proof-drain-stop proof-leaks proof-marketplace fuzz bench-inbox bench-pinned bench-drain ci publisher-binaries services-postgres
