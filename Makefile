# quotad. `make` alone lists the targets.
#
# Settings, in the environment or after `make`:
#   PGBIN=dir   PostgreSQL's programs to use (15 to 18); else the newest of the machine
#   PKG=./dir   the packages that test, test-more, test-short, test-long and microbench look at (./..., and the other modules)
#   RACEPKG=    the packages that test-race looks at, instead of those where there is a race to be found
#   TESTFLAGS=  further flags for go test, for example '-run TestVectors -v'
#   FAULTS=name the seeded faults that seeded-faults looks at, instead of all
#   BENCHFLAGS= further flags of the bench, for example '-rows REGEXP' or '-long'; -help lists them
#   ROUNDS=3    how often `make test-random` draws new seeds
#   TIMEOUT=1h  the deadline of a package's tests, against hanging
#   FUZZTIME=1m how long each fuzz target runs
#   MINUTES=30  how long `make soak` takes, at least 6
#   ARGS=       further flags for `quotad serve` in `make run`, for example '--listen=127.0.0.1:9000'

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The targets run one after another, except the modules' tests beside the main module's (TOGETHER).
ifndef TOGETHER
.NOTPARALLEL:
endif

VERSION  := $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
PKG      ?= ./...
FUZZTIME ?= 30s
MINUTES  ?= 30
ROUNDS   ?= 1
TIMEOUT  ?= 1h
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

# Programs are built without C, and so are tests: each package is compiled once for both. The race detector needs C.
export CGO_ENABLED := 0

# The seed of tests by rapid. Those of the test kit are fixed by their names.
export RAPID_SEED ?= 20261127

# Tools are kept outside of the clone, by their version, so that the next clone finds them.
TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quotad/tools

LINT_VERSION := v2.15.0
LINT         := $(TOOLS)/golangci-lint-$(LINT_VERSION)/golangci-lint

# Builds have the flags of tests, so that each package is compiled once for both. Releases are built with
# -trimpath: see Dockerfile.
GOBUILD := go build -buildvcs=false -ldflags '-X main.version=$(VERSION)'
# A package more than there are processors, because many tests wait for something. `make lint` has the checks of go vet.
GOTESTFLAGS := -buildvcs=false -vet=off -p $$(($(shell getconf _NPROCESSORS_ONLN) + 1)) -timeout $(TIMEOUT)
# With RERUN=dir a test that failed runs once more, alone. What came of that, and how long each test
# took, is left in dir for .ci/run.
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM         := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)/gotestsum
rerun = '$(GOTESTSUM)' --format=pkgname --hide-summary=skipped --rerun-fails=1 --rerun-fails-max-failures=9 \
  --rerun-fails-run-root-test --rerun-fails-report="$$(mktemp '$(RERUN)/rerun.XXXXXX')" \
  --jsonfile-timing-events="$$(mktemp '$(RERUN)/times.XXXXXX')" --packages="$(1)" --
# $(call go_test,flags,packages)
go_test = $(if $(RERUN),$(call rerun,$(2)),go test) $(GOTESTFLAGS) $(1) $(TESTFLAGS) $(if $(RERUN),,$(2))
# The bench and the bridge to Stripe are modules of their own: ./... is without them.
MODULES := bench cmd/quotad-stripe
test_modules = $(if $(filter ./...,$(PKG)),for dir in $(MODULES); do (cd $$dir && $(call go_test,$(1),./...)); done)
# $(call measured,size) begins a file of what each package costs, and go_test with $(MEASURED) writes to it.
measured = @mkdir -p bin; rm -f bin/costs-$(1).jsonl
MEASURED = -exec '$(CURDIR)/scripts/measured.sh'

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
LONGEST := ./cmd/quotad ./internal/api ./internal/quota ./internal/faults ./internal/billing/closing ./internal/quota/upkeep ./internal/plans/catalog

# There is no race to be found in these: they look at statements, at bytes or at the tests themselves,
# or they send one request after another, and many.
NORACE := ^(TestPlans|TestBytesPerCounter|TestVectorsLimitsCorrupted|TestMutantsAreCaught|TestLockedMutantsAreCaught$\
|TestThresholdsOfEdits|TestReconcileFinds|TestOverdueIsAConcern|TestLargeBatchAnswer|TestUsageInTheCustomersZone$\
|TestTextsThatCannotBeStored|TestCompareDraftHasBounds|TestDocumentIsValid|TestDocumentHasExactlyTheRoutersRoutes$\
|TestYear|TestLevelsOfValues|TestCleaningMutantsAreCaught)$$|^TestMore

TEST_DEPS := go postgres pgbouncer promtool gateways faketime npm chromium

# Tests whose names begin with TestMore are the further sizes of others: see test-more.
LESS := -skip '^TestMore'

.PHONY: test
test: export QUOTAD_TEST_COSTS = $(CURDIR)/bin/costs-test.jsonl
test: $(if $(RERUN),$(GOTESTSUM)) ## every promise, every page and every fault once; prints what each package cost
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/check-packages.sh $(PKG)
	$(call measured,test)
	@$(MAKE) --no-print-directory -j2 TOGETHER=yes test-main test-modules
	@go run -buildvcs=false ./scripts/testcosts -size test bin/costs-test.jsonl

# The packages that have such tests, but for the modules.
MORE = $(filter-out $(MODULES:%=./%),$(shell grep -rl --include='*_test.go' '^func TestMore' client cmd internal | xargs -n 1 dirname | sort -u | sed 's|^|./|'))

.PHONY: test-main test-modules
test-main:
	$(call go_test,-count=1 $(LESS) $(MEASURED),$(if $(filter ./...,$(PKG)),$(LONGEST)) $(PKG))
test-modules:
	$(call test_modules,-count=1 $(LESS) $(MEASURED))

.PHONY: test-more
test-more: export QUOTAD_TEST_COSTS = $(CURDIR)/bin/costs-test-more.jsonl
test-more: $(if $(RERUN),$(GOTESTSUM)) ## the further sizes: views of pages, rounds of random tests, faults, growth
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/check-packages.sh $(PKG)
	$(call measured,test-more)
	$(call go_test,-count=1 -run '^TestMore' $(MEASURED),$(if $(filter ./...,$(PKG)),$(MORE),$(PKG)))
	@go run -buildvcs=false ./scripts/testcosts -size test-more bin/costs-test-more.jsonl

.PHONY: test-costs
test-costs: ## compare what test and test-more cost with what was recorded; fails when a package costs 40 % more
	@go run -buildvcs=false ./scripts/testcosts -compare -size test bin/costs-test.jsonl
	@go run -buildvcs=false ./scripts/testcosts -compare -size test-more bin/costs-test-more.jsonl

.PHONY: record-costs
record-costs: ## record what the last test and test-more cost, for test-costs
	@go run -buildvcs=false ./scripts/testcosts -record -size test bin/costs-test.jsonl
	@go run -buildvcs=false ./scripts/testcosts -record -size test-more bin/costs-test-more.jsonl

.PHONY: seeded-faults
seeded-faults: ## put each fault of scripts/seeded-faults into a copy of the code, and see that its test fails
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/seeded-faults.sh $(FAULTS)

.PHONY: test-race
test-race: $(if $(RERUN),$(GOTESTSUM)) ## the small sizes under the race detector
	@scripts/deps.sh $(TEST_DEPS) cc
	@pkgs='$(RACEPKG)'; pkgs=$${pkgs:-./internal/api ./internal/quota $$(scripts/race-packages.sh)}; \
	  CGO_ENABLED=1 $(call go_test,-count=1 -race -short -skip '$(NORACE)',$$pkgs)

.PHONY: test-random
test-random: ## random tests with new seeds, ROUNDS times; a failed one says how to repeat it
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/test-random.sh '$(ROUNDS)' $(GOTESTFLAGS) $(TESTFLAGS)

.PHONY: test-slow
test-slow: ## all tests on one processor, beside a loop that takes half of it
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/one-processor.sh $(MAKE) --no-print-directory test test-more TIMEOUT=12h

.PHONY: test-short
test-short: ## the small sizes only, for between two edits
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/check-packages.sh $(PKG)
	$(call go_test,-short $(LESS),$(PKG))
	$(call test_modules,$(LESS))

.PHONY: test-long
test-long: ## the long sizes: hours of load, kills and random traces
	@scripts/deps.sh $(TEST_DEPS)
	@scripts/check-packages.sh $(PKG)
	QUOTAD_TEST_LONG=1 $(call go_test,-count=1 -timeout 6h,$(PKG))
	$(call test_modules,-count=1)

.PHONY: faults
faults: ## the long sizes of internal/faults alone: connections, processes and servers that die
	@scripts/deps.sh go postgres
	QUOTAD_TEST_LONG=1 $(call go_test,-count=1 -timeout 2h,./internal/faults)

.PHONY: soak
soak: ## a node under a steady load for MINUTES, a row a minute; fails when its last third grows
	@scripts/deps.sh go postgres
	QUOTAD_TEST_SOAK=$(MINUTES) $(call go_test,-count=1 -timeout $$(($(MINUTES) + 15))m -run '^TestSoak$$' -v,./internal/faults)

.PHONY: test-pg
test-pg: $(if $(RERUN),$(GOTESTSUM)) ## the database's tests only, mostly with PGBIN=dir for another PostgreSQL
	@scripts/deps.sh $(TEST_DEPS)
	@pkgs=$$(scripts/db-packages.sh); $(call go_test,-count=1,$$pkgs)

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
	@scripts/check-packages.sh $(PKG)
	$(call go_test,-run '^$$' -bench '$(BENCH)' -benchmem,$(PKG))

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@scripts/deps.sh go postgres
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: tools
tools: $(LINT) $(GOTESTSUM) ## what all targets need
	@scripts/deps.sh $(TEST_DEPS) cc curl node shellcheck wrk

.PHONY: lint
lint: $(LINT) ## golangci-lint with the house's rules and those of go vet, plain words, shellcheck if there is one
	'$(LINT)' run
	for dir in $(MODULES); do (cd $$dir && '$(LINT)' run); done
	@scripts/plain-words.sh
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/*.sh .ci/run; else echo 'shellcheck is not installed: skipped'; fi

.PHONY: fmt
fmt: $(LINT) ## format the Go files
	'$(LINT)' fmt

# Built by the Go that builds quotad: an older one could not read the code.
$(LINT):
	@scripts/deps.sh go
	@tc=$$(go env GOVERSION); echo "installing golangci-lint $(LINT_VERSION)"; \
	  GOFLAGS= GOTOOLCHAIN=$${tc%% *} GOBIN='$(@D)' \
	  go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

$(GOTESTSUM):
	@scripts/deps.sh go
	@echo "installing gotestsum $(GOTESTSUM_VERSION)"; GOFLAGS= GOBIN='$(@D)' go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

.PHONY: print-gotestsum
print-gotestsum:
	@echo '$(GOTESTSUM)'

.PHONY: generate
generate: ## write what is generated: docs/openapi.json, the time zones of Go, and what pages take from npm
	@scripts/deps.sh go npm
	@scripts/generate.sh .

.PHONY: verify
verify: ## fail when a generated file, go.mod or go.sum is out of date, or generators of clients refuse docs/openapi.json
	@scripts/deps.sh go npm
	@scripts/verify.sh
	go test -buildvcs=false -vet=off -run '^(TestDocument|TestExamplesWork)' ./internal/api # names what the document lacks
	go mod tidy -diff
	for dir in $(MODULES); do (cd $$dir && go mod tidy -diff); done
	@scripts/generators.sh

.PHONY: smoke
smoke: ## start `make run` elsewhere and paste the curl line that it prints
	@scripts/smoke.sh

.PHONY: readme
readme: ## run the marked commands of README.md and docs/guide and compare their answers
	@scripts/readme-check.sh

.PHONY: db-reset
db-reset: ## delete the embedded server's data (CONFIRM=yes)
	@CONFIRM='$(CONFIRM)' scripts/db-reset.sh
