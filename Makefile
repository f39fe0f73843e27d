# Everything a person types. `make help` lists it.
.DEFAULT_GOAL := help
SHELL := bash

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Servers
services: ## Install and start the real servers on loopback (S="postgres18 nats" for some)
	@services/services up $(S)
services-status: ## Show which servers run, with their addresses
	@services/services status $(S)
services-down: ## Stop the servers (S="..." for some)
	@services/services down $(S)

tidy: ## go mod tidy in every module
	@scripts/tidy

.PHONY: help services services-status services-down tidy
