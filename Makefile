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
vulncheck: ## Look for known vulnerabilities
	@scripts/vulncheck

proof-emit: services-postgres ## Prove the emit side: faults, hostile inputs, races
	@go run ./test/cmd/proof-emit
bench-emit: services-postgres ## Measure what an emit costs, as ratios (LONG=1 for the long form)
	@go run ./test/cmd/bench-emit $(if $(LONG),-long)

ci: ## Run what CI runs
	@.ci/run

services-postgres:
	@services/services up postgres18 postgres15 pgbouncer >/dev/null

.PHONY: help services services-status services-check services-down build test examples lint format tidy check-deps vulncheck proof-emit bench-emit ci services-postgres
