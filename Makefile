# Everything a developer runs. `make help` lists it.

GO        ?= go
# Where the tests find PostgreSQL. Each test makes databases of its own and
# drops them.
export HOOKFOLD_TEST_POSTGRES ?= postgres://postgres@127.0.0.1:5432/postgres
# The same for MariaDB or MySQL.
export HOOKFOLD_TEST_MYSQL ?= mysql://root@127.0.0.1:3306/

# The packages whose goroutines meet.
CONCURRENT = ./journal/... ./sink/... ./internal/ingest/... ./internal/enrich/... ./internal/pipeline/... ./internal/lane/... ./internal/daemon/... ./internal/demo/...

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build ./hookfold
	$(GO) build -trimpath -o hookfold ./cmd/hookfold

.PHONY: demo
demo: ## Run the demo
	$(GO) run ./cmd/hookfold demo

.PHONY: test
test: ## All tests, then the concurrent packages under the race detector
	$(GO) test -timeout 10m ./...
	$(GO) test -timeout 10m -race -short $(CONCURRENT)
	cd bench && $(GO) vet . && $(GO) test .

.PHONY: race
race: ## All tests under the race detector (slow)
	$(GO) test -timeout 30m -race ./...

.PHONY: lint
lint: ## gofmt, vet, staticcheck, and the project's own rules
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'run: make format'; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -count=1 ./internal/lint

.PHONY: format
format: ## Format the Go files
	gofmt -w .

.PHONY: e2e
e2e: ## The scenarios and examples only
	$(GO) test -count=1 -timeout 10m ./e2e/...

.PHONY: cases
cases: ## The public cases in their full form (slow)
	HOOKFOLD_ORDERS=720 HOOKFOLD_KILLS=200 $(GO) test -count=1 -timeout 90m ./e2e/cases

.PHONY: orders
orders: ## 2,000 orders of each of the three problems by prove (slow)
	HOOKFOLD_ORDERS=2000 $(GO) test -count=1 -timeout 60m -v -run TestTheThreeProblems ./internal/prove

.PHONY: golden
golden: ## Rewrite expected outputs; read the difference before you commit it
	$(GO) test ./internal/compile ./internal/config ./internal/cli ./sink/hasura ./sink/postgrest ./e2e ./e2e/cases -update

FUZZTIME ?= 20s
.PHONY: fuzz-short
fuzz-short: ## Every fuzz target for FUZZTIME each
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

.PHONY: kill
kill: ## Kill -9 at 50 random moments of a load
	HOOKFOLD_KILLS=50 $(GO) test -count=1 -timeout 30m -v -run 'TestKill|TestLanesAndKills' ./e2e

.PHONY: kill-short
kill-short: ## Kill -9 at five random moments of a load
	HOOKFOLD_KILLS=5 $(GO) test -count=1 -timeout 10m -v -run 'TestKill|TestLanesAndKills' ./e2e

.PHONY: bench
bench: ## Measure beside what people would use in its place (an hour; docs/benchmarks.md)
	cd bench && $(GO) run .

.PHONY: bench-short
bench-short: ## The same in small (some five minutes)
	cd bench && $(GO) run . -short

.PHONY: microbench
microbench: ## The Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...
