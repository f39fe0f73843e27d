# Everything a person types; `make` alone lists it. The work is in scripts/, services/ and test/cmd/.
.DEFAULT_GOAL := help
SHELL := bash

# A proof's or benchmark's program, built if it is missing or older than its source: `go build` knows, and leaves the
# others alone. CI builds them all at once beforehand (scripts/build).
program = go build $(2) -o bin/proofs/ $(1) && bin/proofs/$(notdir $(1))

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
test: ## Run every test against PostgreSQL 18 and 15, and check the conformance page (P=./test/suite/emit for one package)
	@scripts/test $(P)
examples: ## Run the producers in Python, Node.js, Rust and SQL (L="python sql" for some of them)
	@examples/run $(L)
lint: ## Run the linters over every module and script
	@scripts/lint
format: ## Format every module
	@scripts/format
tidy: ## go mod tidy in every module
	@scripts/tidy
house: ## Measure the tree and check its order: modules, sizes, interfaces, names (ARGS="-help" for more)
	@$(call program,./test/cmd/house) $(ARGS)
coverage: ## Count the statements that tests run, per product package (ARGS="--keep after.txt --before before.txt" to compare)
	@scripts/coverage $(ARGS)
check-deps: ## Count the modules that a user's build sees
	@scripts/check-deps
check-deploy: services-postgres ## Check what people deploy with: image, compose, Helm chart, Heroku, systemd (needs Helm, which it builds)
	@services/services up nats >/dev/null
	@scripts/check-deploy
check-alerts: ## Test the alert rules with promtool, which it builds, and read the dashboard's expressions
	@scripts/check-alerts
check-costs: ## Count what an event costs the database: pages, WAL, HOT updates, round trips. It fails where that has grown
	@$(call program,./test/cmd/check-costs)
vulncheck: ## Look for known vulnerabilities in the versions that users of each module resolve
	@scripts/vulncheck
cli-reference: ## Write docs/reference/cli.md from the help of outboxctl's commands
	go test ./cmd/outboxctl -run TestReferenceIsGenerated -update

pictures: services-postgres ## Make the pictures of a terminal in docs/pictures anew, from outboxctl itself (two minutes)
	go build -o bin/outboxctl ./cmd/outboxctl
	go run ./test/cmd/record-terminal -outboxctl bin/outboxctl -into docs/pictures
plot: ## Draw docs/pictures/pinned.svg from the figures of docs/internals/benchmarks.md
	@$(call program,./test/cmd/draw-pinned)

release-rehearsal: services-postgres ## Rehearse a release in a clone: tags, a module proxy, everything installed from it, archives twice (SHORT=1: this machine's; KEEP=DIR keeps proxy and archives)
	@services/services up nats >/dev/null
	@scripts/release-rehearsal $(if $(SHORT),--short)

notices: ## Write THIRD-PARTY-NOTICES: the licences of what is linked into the programs
	@scripts/notices

run-outbox-publisher: ## Run outbox-publisher between the local PostgreSQL and NATS, with examples/registry.yaml; it makes what is missing
	@scripts/run-outbox-publisher
example-event: ## Emit one event with psql and see it at the broker, while run-outbox-publisher runs
	@scripts/example-event

marketplace: services-postgres ## Run the reference application on the local servers: API, publishers, workers, load (ARGS="--broker pubsub --stay")
	@services/services up nats pubsub redis >/dev/null
	@examples/marketplace/run $(ARGS)

proof-emit: services-postgres ## Prove the emit side: faults, hostile inputs, races
	@$(call program,./test/cmd/proof-emit) $(if $(RESULTS),-results $(RESULTS))
bench-emit: services-postgres ## Measure what an emit costs, as ratios (SHORT=1, LONG=1 for other forms)
	@$(call program,./test/cmd/bench-emit) $(if $(LONG),-long) $(if $(SHORT),-short)

proof-sim: ## Prove the relay's core in simulated time: thousands of worlds with faults (SHORT=1 for fewer; DAY=2026-11-16 for the seeds of that day)
	@$(call program,./relay/internal/sim/proof-sim) $(if $(SHORT),-short) $(if $(DAY),-day $(DAY))
proof-model: services-postgres ## Prove that PostgreSQL and the model do the same, action by action (SHORT=1 for fewer)
	@$(call program,./relay/internal/modeltest/proof-model) $(if $(SHORT),-short)
proof-order: services-postgres ## Prove the order: relays that join, leave and die between PostgreSQL and NATS (SHORT=1 for fewer events)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-order) $(if $(SHORT),-short)
proof-crash: services-postgres ## Prove every crash point: a process kills itself there, another takes over (SHORT=1 for fewer events)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-crash,-tags crash) $(if $(SHORT),-short)
proof-chaos: services ## Prove it under chaos: kills, restarts, cuts, outages, wrong clocks (SHORT=1; DURATION=30m for the long form)
	@$(call program,./test/cmd/proof-chaos) $(if $(SHORT),-short) $(if $(DURATION),-duration $(DURATION))
proof-failover: services-postgres ## Prove failover, crash recovery and restore between clusters of its own (SHORT=1 for less)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-failover) $(if $(SHORT),-short)
proof-hostile: services-postgres ## Prove hostile inputs through the whole path, to NATS and Pub/Sub
	@services/services up nats pubsub >/dev/null
	@$(call program,./test/cmd/proof-hostile)
proof-inbox: services-postgres ## Prove the inboxes: consumers killed at every point, copies at the same moment, Redis that dies and forgets (SHORT=1 for fewer events)
	@services/services up nats redis >/dev/null
	@$(call program,./test/cmd/proof-inbox,-tags crash) $(if $(SHORT),-short) $(if $(RESULTS),-results $(RESULTS))
proof-ops: services-postgres ## Prove repair and replay: 100,000 dead letters and as many copies by jobs whose workers are killed, while live events flow (SHORT=1 for 4,000)
	@$(call program,./test/cmd/proof-ops,-tags crash) $(if $(SHORT),-short)
proof-console: services-postgres ## Prove the console in a real Chromium: every page and verb, hostile texts, accessibility, a repair (SHORT=1: times do not decide; INTO=docs/img for a picture of every page)
	@$(call program,./test/cmd/proof-console) $(if $(SHORT),-short) $(if $(INTO),-into $(INTO))
proof-mutants: services-postgres ## Prove the proofs: every mutant is caught by the cheapest of them
	@services/services up nats pubsub redis >/dev/null
	@$(call program,./test/cmd/proof-mutants)
proof-retention: services-postgres ## Prove that retention removes what is settled and hurts nobody (SHORT=1 for less)
	@$(call program,./test/cmd/proof-retention) $(if $(SHORT),-short)
proof-publisher: services-postgres publisher-binaries ## Prove outbox-publisher: the first steps of the pages on fresh servers, restarts of everything, an outage with 20,000 events waiting (SHORT=1 for less)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-publisher) $(if $(SHORT),-short)
proof-drain-stop: services-postgres publisher-binaries ## Prove that a stopped publisher loses and repeats nothing, a hundred times (SHORT=1 for ten)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-drain-stop) $(if $(SHORT),-short)
proof-leaks: services-postgres publisher-binaries ## Prove that no log, metric, trace, answer or error shows a secret or personal data (SHORT=1 for less)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-leaks) $(if $(SHORT),-short)
proof-upgrade: services-postgres publisher-binaries ## Prove upgrades: the programs of another commit on this schema, both beside each other under load, and back (OLD=v0.1.0, by default the last release; SHORT=1 for fewer events)
	@services/services up nats >/dev/null
	@go build -o bin/proofs/ ./test/cmd/upgrade-client
	@$(call program,./test/cmd/proof-upgrade) $(if $(OLD),-old "$(OLD)") $(if $(SHORT),-short)
proof-quickstart: services-postgres ## Prove the first steps: README's quick start in an empty folder, from a module proxy, the module that init writes, and every block of README and the tutorial (SHORT=1 for less)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/proof-quickstart) $(if $(SHORT),-short)
proof-marketplace: services-postgres ## Prove the whole marketplace: API, publishers and workers killed under load, over NATS and Pub/Sub, with both inboxes (SHORT=1 for less)
	@services/services up nats redis >/dev/null
	@go build -trimpath -o bin/marketplace/ ./examples/marketplace/cmd/...
	@$(call program,./test/cmd/proof-marketplace) $(if $(SHORT),-short)
proof-pubsub: ## Prove publisher and consumer against Google Pub/Sub itself, in a project of yours (PROJECT=my-project; ENDPOINT, DURATION)
	@$(call program,./test/cmd/proof-pubsub) -project "$(PROJECT)" $(if $(ENDPOINT),-endpoint "$(ENDPOINT)") $(if $(EMULATOR),-emulator $(EMULATOR)) $(if $(DURATION),-duration $(DURATION))
proofs: ## Run every proof and benchmark in its full form and keep a report (ONLY="proof-sim proof-order" for some; LONG=1 for a night)
	@LONG=$(LONG) scripts/proofs $(ONLY)
fuzz: services-postgres ## Fuzz every target (SECONDS=10 each)
	@scripts/fuzz $(SECONDS)
bench-inbox: services-postgres ## Measure what the inbox adds to a consumer's transaction, as ratios
	@$(call program,./test/cmd/bench-inbox)
bench-pinned: services-postgres ## Measure the relay under a held snapshot and an open writer (SHORT=1, LONG=1 for half an hour each)
	@$(call program,./test/cmd/bench-pinned) $(if $(LONG),-long) $(if $(SHORT),-short)
bench-growth: services-postgres ## Measure the relay beside a backlog, dead and parked events and type names without number (SHORT=1: a tenth)
	@$(call program,./test/cmd/bench-growth) $(if $(SHORT),-short)
bench-look: services-postgres publisher-binaries ## Measure what it takes to look at 10,000,000 events with outboxctl and the console (SHORT=1: 500,000, and pages decide)
	@$(call program,./test/cmd/bench-look) $(if $(SHORT),-short)
bench-pubsub: ## Measure how fast one topic of Pub/Sub takes events with a round trip of 30 ms (SHORT=1: only what is counted decides)
	@$(call program,./test/cmd/bench-pubsub) $(if $(SHORT),-short)
bench-drain: services-postgres ## Measure how fast the relay drains a backlog, as ratios (SHORT=1, LONG=1 for other forms)
	@services/services up nats >/dev/null
	@$(call program,./test/cmd/bench-drain) $(if $(LONG),-long) $(if $(SHORT),-short)

ci: ## Run what CI runs
	@.ci/run

publisher-binaries:
	@go build -trimpath -o bin/ ./cmd/...

services-postgres:
	@services/services up postgres18 postgres15 pgbouncer >/dev/null

.PHONY: run-outbox-publisher example-event marketplace help services services-status services-check services-down build test examples lint format tidy house coverage check-deps check-deploy check-alerts check-costs vulncheck cli-reference pictures notices proof-emit bench-emit proof-sim proof-model proof-order proof-crash proof-chaos proof-failover proof-hostile proof-inbox proof-ops proof-console proof-mutants proof-retention proof-publisher proof-drain-stop proof-leaks proof-marketplace proof-pubsub proof-upgrade proof-quickstart proofs fuzz bench-inbox bench-pinned bench-growth bench-look bench-pubsub bench-drain ci publisher-binaries services-postgres plot release-rehearsal
