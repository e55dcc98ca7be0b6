# quotad. `make` alone lists the targets.
#
# Settings, in the environment or after `make`:
#   PGBIN=dir   PostgreSQL's programs to use (15 to 18); else the newest of the machine
#   RACE_PGBIN=dir   another PostgreSQL for the race detector's part of `make test`
#   PKG=./dir   the packages that test, test-short, test-long and microbench look at (./..., and the other modules)
#   TESTFLAGS=  further flags for go test, for example '-run TestVectors -v'
#   BENCHFLAGS= further flags of the bench, for example '-rows REGEXP' or '-long'; -help lists them
#   FUZZTIME=1m how long each fuzz target runs
#   MINUTES=30  how long `make soak` takes, at least 6
#   ARGS=       further flags for `quotad serve` in `make run`, for example '--listen=127.0.0.1:9000'

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

VERSION  := $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
PKG      ?= ./...
RACEPKG  ?= ./internal/...
FUZZTIME ?= 30s
MINUTES  ?= 30
BENCH    ?= .

# Tests run in their package's directory, so paths must not be relative.
ifneq ($(PGBIN),)
override PGBIN := $(abspath $(PGBIN))
export PGBIN
endif
ifneq ($(QUOTAD_VECTORS_DIR),)
override QUOTAD_VECTORS_DIR := $(abspath $(QUOTAD_VECTORS_DIR))
export QUOTAD_VECTORS_DIR
endif

LINT_VERSION := v2.15.0
LINT         := .tools/golangci-lint-$(LINT_VERSION)/golangci-lint

GOBUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)'
# As many packages at once as there are processors. With one more, pages and servers miss their
# deadlines on a slow machine. `make lint` has go vet.
GOTEST := go test -buildvcs=false -vet=off -p $(shell getconf _NPROCESSORS_ONLN)
# The bench and the bridge to Stripe are modules of their own: ./... is without them.
MODULES := bench cmd/quotad-stripe
test_modules = $(if $(filter ./...,$(PKG)),for dir in $(MODULES); do (cd $$dir && $(GOTEST) -timeout 25m $(1) $(TESTFLAGS) ./...); done)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo 'Settings, after make:'
	@sed -n 's/^#   /  /p' Makefile

.PHONY: run
run: ## serve on 127.0.0.1:8080 with an embedded PostgreSQL and demo data
	@scripts/deps.sh go postgres
	@$(MAKE) --no-print-directory build
	@QUOTAD_LISTEN="$${QUOTAD_LISTEN:-127.0.0.1:8080}" exec bin/quotad serve --demo $(ARGS)

.PHONY: build
build: ## build bin/quotad, a static binary
	@scripts/deps.sh go
	$(GOBUILD) -o bin/quotad ./cmd/quotad

.PHONY: build-stripe
build-stripe: ## build bin/quotad-stripe, the bridge to Stripe
	@scripts/deps.sh go
	cd cmd/quotad-stripe && $(GOBUILD) -o ../../bin/quotad-stripe .

# They begin first, so that no long one is left alone at the end.
LONGEST := ./internal/quota ./internal/api ./cmd/quotad

# They look at statements, at bytes or at the tests themselves, where there is no race to be found.
NORACE := ^(TestPlans|TestBytesPerCounter|TestVectorsLimitsCorrupted|TestMutantsAreCaught|TestLockedMutantsAreCaught)$$

.PHONY: test
test: ## all tests, then the small sizes under the race detector
	@scripts/deps.sh go postgres pgbouncer promtool gateways cc npm chromium
	$(GOTEST) -count=1 -timeout 25m $(TESTFLAGS) $(if $(filter ./...,$(PKG)),$(LONGEST)) $(PKG)
	$(call test_modules,-count=1)
	$(if $(RACE_PGBIN),PGBIN='$(abspath $(RACE_PGBIN))') CGO_ENABLED=1 $(GOTEST) -count=1 -timeout 25m -race -short -skip '$(NORACE)' $(TESTFLAGS) $(if $(filter ./internal/...,$(RACEPKG)),$(filter ./internal/%,$(LONGEST))) $(RACEPKG)

.PHONY: test-short
test-short: ## the small sizes only, for between two edits
	@scripts/deps.sh go postgres pgbouncer promtool gateways npm chromium
	$(GOTEST) -short $(TESTFLAGS) $(PKG)
	$(call test_modules,)

.PHONY: test-long
test-long: ## the long sizes: hours of load, kills and random traces
	@scripts/deps.sh go postgres pgbouncer promtool gateways cc npm chromium
	QUOTAD_TEST_LONG=1 $(GOTEST) -count=1 -timeout 6h $(TESTFLAGS) $(PKG)
	$(call test_modules,-count=1)

.PHONY: faults
faults: ## the long sizes of internal/faults alone: connections, processes and servers that die
	@scripts/deps.sh go postgres
	QUOTAD_TEST_LONG=1 $(GOTEST) -count=1 -timeout 2h $(TESTFLAGS) ./internal/faults

.PHONY: soak
soak: ## a node under a steady load for MINUTES, a row a minute; fails when its last third grows
	@scripts/deps.sh go postgres
	QUOTAD_TEST_SOAK=$(MINUTES) $(GOTEST) -count=1 -timeout $$(($(MINUTES) + 15))m -run '^TestSoak$$' -v ./internal/faults

.PHONY: test-pg
test-pg: ## the database's tests only, mostly with PGBIN=dir for another PostgreSQL
	@scripts/deps.sh go postgres pgbouncer promtool gateways npm chromium
	@pkgs=$$(scripts/db-packages.sh); $(GOTEST) -count=1 -timeout 25m $(TESTFLAGS) $$pkgs

# An executable of its own: a signal to `go run` would not end what it runs.
.PHONY: build-bench
build-bench: build
	go build -C bench -buildvcs=false -o ../bin/quotad-bench

.PHONY: bench
bench: build-bench ## measure quotad beside a handler that does nothing; writes docs/benchmarks
	@scripts/deps.sh postgres wrk redis
	@exec bin/quotad-bench $(BENCHFLAGS)

.PHONY: bench-gate
bench-gate: build-bench ## a few rows of it, which fail under their floors
	@scripts/deps.sh postgres wrk
	@exec bin/quotad-bench -short -gate docs/benchmarks/gate.json $(BENCHFLAGS)

.PHONY: bench-record
bench-record: build-bench ## record those rows, three times, for bench-gate
	@scripts/deps.sh postgres wrk
	@exec bin/quotad-bench -short -record docs/benchmarks/gate.json $(BENCHFLAGS)

.PHONY: microbench
microbench: ## Go's benchmarks of the parts
	@scripts/deps.sh go postgres
	$(GOTEST) -run '^$$' -bench '$(BENCH)' -benchmem -timeout 30m $(TESTFLAGS) $(PKG)

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@scripts/deps.sh go postgres
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: lint
lint: $(LINT) ## go vet, golangci-lint with the house's rules, plain words, shellcheck if there is one
	go vet -buildvcs=false ./...
	for dir in $(MODULES); do (cd $$dir && go vet -buildvcs=false ./...); done
	$(LINT) run
	for dir in $(MODULES); do (cd $$dir && '$(CURDIR)/$(LINT)' run); done
	@scripts/plain-words.sh
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/*.sh .ci/run; else echo 'shellcheck is not installed: skipped'; fi

.PHONY: fmt
fmt: $(LINT) ## format the Go files
	$(LINT) fmt

# Built by the Go that builds quotad: an older one could not read the code.
$(LINT):
	@scripts/deps.sh go
	@tc=$$(go env GOVERSION); echo "installing golangci-lint $(LINT_VERSION)"; \
	  GOFLAGS= GOTOOLCHAIN=$${tc%% *} GOBIN='$(CURDIR)/$(@D)' \
	  go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

.PHONY: generate
generate: ## write what is generated: docs/openapi.json, the time zones of Go, and what pages take from npm
	@scripts/deps.sh go npm
	@scripts/generate.sh .

.PHONY: verify
verify: ## fail when a generated file, go.mod or go.sum is out of date
	@scripts/deps.sh go npm
	@scripts/verify.sh
	go mod tidy -diff
	for dir in $(MODULES); do (cd $$dir && go mod tidy -diff); done

.PHONY: smoke
smoke: ## start `make run` elsewhere and paste the curl line that it prints
	@scripts/smoke.sh

.PHONY: readme
readme: ## run the marked commands of README.md and docs/guide and compare their answers
	@scripts/readme-check.sh

.PHONY: db-reset
db-reset: ## delete the embedded server's data (CONFIRM=yes)
	@CONFIRM='$(CONFIRM)' scripts/db-reset.sh
