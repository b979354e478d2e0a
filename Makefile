# SPDX-License-Identifier: Apache-2.0
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Built once, outside the repository: Kubernetes, etcd, CoreDNS, node images, the linter.
CACHE ?= $(or $(THESEUS_LAB_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/theseus-lab)
export THESEUS_LAB_CACHE := $(CACHE)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LINT := $(CACHE)/bin/golangci-lint-$(shell cat tools/go.mod tools/go.sum | sha256sum | cut -c1-12)
FUZZTIME ?= 60s
# The pure parsers. FUZZDIR=executors adds the adapters' own, after a long build: client-go is instrumented too.
FUZZDIR ?= reconcile

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/theseus
	go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/theseus ./cmd/theseus

.PHONY: demo
demo: build ## Upgrade a real three-machine control plane on this machine from a Git repository, and show it
	test/lab/demo.sh

.PHONY: demo-down
demo-down: ## Take the demo down
	test/lab/demo.sh down

.PHONY: test
test: lint unit e2e ## Lint, unit and integration tests, and the core scenarios in the lab
	@echo "make test: everything passed"

.PHONY: test-full
test-full: lint unit rolls e2e-full fuzz ## All of the above, the longer matrices in the lab, and the fuzz targets

.PHONY: unit
unit: envtest tofu ## Unit and integration tests: real Git servers, a real API server, Terraform and OpenTofu
	KUBEBUILDER_ASSETS="$$(go run -C test/lab ./cmd/parts envtest)" THESEUS_TOFU="$$(go run -C test/lab ./cmd/parts tofu)" go test -race -shuffle=on ./...
	go test -C test/lab ./parts/... ./service/... ./cluster/...

.PHONY: rolls
rolls: ## Simulated rolls of machines, with a fault at every point of them; unit tests try some points only
	go test ./reconcile/rollout/planetest -all -rapid.checks=1000 -timeout 60m

.PHONY: e2e
e2e: build parts ## The core scenarios on a real kubeadm cluster
	THESEUS_BIN=$(CURDIR)/bin/theseus go test -C test/lab -tags e2e -count=1 -v -timeout 40m ./e2e/...

.PHONY: e2e-full
e2e-full: build parts ## The core scenarios and the longer matrices
	THESEUS_BIN=$(CURDIR)/bin/theseus THESEUS_E2E_FULL=1 go test -C test/lab -tags e2e -count=1 -v -timeout 120m ./e2e/...

.PHONY: envtest
envtest: ## Build the API server that integration tests use
	go run -C test/lab ./cmd/parts envtest >/dev/null

.PHONY: tofu
tofu: ## Build OpenTofu, which tests run beside terraform
	go run -C test/lab ./cmd/parts tofu >/dev/null

.PHONY: engine
engine: ## Start Docker Engine when none answers
	go run -C test/lab ./cmd/lab engine

.PHONY: parts
parts: engine ## Build all that the lab needs, once
	go run -C test/lab ./cmd/parts all

.PHONY: lab-down
lab-down: ## Remove every lab machine, network and process
	for name in lab e2e demo; do go run -C test/lab ./cmd/lab down --name $$name; done

.PHONY: fuzz
fuzz: ## Run every fuzz target below FUZZDIR for FUZZTIME
	@for dir in $$(grep -rlE '^func Fuzz' --include='*_test.go' $(FUZZDIR) | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9]+' $$dir/*_test.go | cut -c6-); do \
	    echo "== $$dir $$target"; go test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=5x ./$$dir; \
	  done; \
	done

.PHONY: lint
lint: $(LINT) ## Lint the product and the lab
	$(LINT) run --allow-parallel-runners ./...
	cd test/lab && $(LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...

$(LINT):
	@mkdir -p $(@D)
	go build -C tools -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: golden
golden: ## Rewrite golden files; read the diff as a story before you commit it
	go test ./reconcile/... -update

.PHONY: verify
verify: ## Fail when go.mod is untidy or a golden file is out of date
	go mod tidy -diff
	go mod tidy -C test/lab -diff
	go test ./reconcile/... -update >/dev/null && git diff --exit-code
