SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

# Tests, tools and functions share compiled packages: the functions ship without paths, without net/rpc and without C.
export GOFLAGS     := $(GOFLAGS) -trimpath -tags=lambda.norpc
export CGO_ENABLED ?= 0

# pip_install installs a file of requirements into an environment. The file names everything, which pip check checks;
# Python compiles what a tool imports, once.
pip_install = $(1)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --requirement $(2) && $(1)/bin/pip check >&2
unexport PYTHONDONTWRITEBYTECODE

## Run: on this machine, without an AWS account and without containers

LOCAL := .local/bin/local

.PHONY: help run invoke build lists test test-quick test-clients test-faults acceptance test-api fuzz

help: ## this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# exec: no shell runs in between. Ctrl-C reaches the stack itself, and make passes TERM on. A SIGINT
# that is sent to make alone (kill -INT) is not passed on: end the stack with Ctrl-C or TERM.
run: ## the whole stack until Ctrl-C; PORT=8080 chooses the gateway's port, JAIL=off runs functions unconfined
	@local/check.sh && $(MAKE) --no-print-directory $(LOCAL) && exec $(LOCAL) run

invoke: $(LOCAL) ## one event through a compiled function: FN=sms EVENT=events/sms-send-managed.json
	@exec $(LOCAL) invoke $(FN) $(EVENT)

.PHONY: $(LOCAL)
$(LOCAL):
	@echo "compiling the local stack" >&2
	@go build -o $@ ./local

build: programs ## every package; the operator's svc and the local stack in .local/bin
	go build ./...

.PHONY: programs
programs:
	go build -o .local/bin/ ./cmd/svc ./local

lists: ## the table of disposable mail domains, from the published lists that its sources.json pins
	go run ./functions/security/disposable/build

## Test

FAULT_SEED ?= $(shell date +%s)
# Every log of a test run, for one search through all of them for secrets.
TEST_LOGS  := $(CURDIR)/.local/test-logs
# These always run, because they depend on more than Go's cache of test results knows: they compile the programs that they
# run, or run in the jail as a whole. Another package runs again when its code, a file that it reads or a variable changes.
STACKS   := ./test/acceptance ./local ./functions/pdf/render
HOSTS    := ./local/lambda ./local/gateway ./local/jail ./local/stack ./local/build ./functions/pdf
SCHEDULE := ./test/acceptance/faults
# The longest packages start first, so that no long test runs alone at the end.
FIRST = ./test/policy ./functions/pdf/render/browser ./shared/credit ./cmd/svc
UNITS = $(FIRST) $$(go list ./... | grep -vxF "$$(go list $(FIRST) $(SCHEDULE) $(STACKS) $(HOSTS))")

# The packages' tests share one DynamoDB Local, each with tables of its own.
SHARED := go run ./test/enginetest/shared

test: export TEST_LOGS := $(TEST_LOGS)
test: export FAULT_SEED := $(FAULT_SEED)
test: ## everything but what make test-nightly has: checks, unit tests, store tests on DynamoDB Local, acceptance tests
	$(MAKE) --jobs=4 compile downloads format template openapi
	@echo "fault schedules: the fixed seed, and FAULT_SEED=$(FAULT_SEED)"
	@rm -rf $(TEST_LOGS) && mkdir -p $(TEST_LOGS)
	{ $(MAKE) test-units && $(MAKE) test-contract && $(MAKE) test-local && $(MAKE) test-schedules; } 2>&1 | tee $(TEST_LOGS)/go-test.log
	go run ./test/acceptance/leaks $(TEST_LOGS)
	@echo "the slowest packages, in seconds:"
	@awk '$$1 == "ok" && $$3 ~ /s$$/ { printf "%8.1f %s\n", $$3, $$2 }' $(TEST_LOGS)/go-test.log | sort -rn | head -15

# The packages and their tests compile, for the cache of the tests, while the tests' engine and browser arrive.
.PHONY: compile downloads
compile: programs
	@go list -export -test ./... > /dev/null
downloads: programs
	$(SHARED) true
	.local/bin/local layer

# The shares of make test, one after another: on a busy machine a request lives longer than the settler of the fault
# schedules assumes.
.PHONY: test-units test-contract test-local test-schedules test-race test-nightly

# make lint vets every package.
test-units:
	$(SHARED) go test -vet=off -p 2 -timeout 15m $(UNITS)
	$(SHARED) go test -vet=off -count=1 -p 2 -timeout 15m $(HOSTS)

test-contract:
	go test -vet=off -count=1 -timeout 15m ./test/acceptance

test-local:
	go test -vet=off -count=1 -timeout 15m ./functions/pdf/render ./local

test-schedules:
	go test -vet=off -count=1 -timeout 15m -v ./test/acceptance/faults

# The race detector sees nothing in programs that a test compiles and starts.
test-race: export GORACE := atexit_sleep_ms=0
test-race: export CGO_ENABLED := 1
test-race: ## the unit tests and the local hosts' under the race detector
	$(SHARED) go test -race -count=1 -p 2 -timeout 30m $(UNITS)
	$(SHARED) go test -race -count=1 -p 2 -timeout 30m ./functions/pdf/render $(HOSTS)

test-nightly: poppler programs ## what takes too long for make test: race detector, hostile documents, schedules, load model, more examples
	$(MAKE) test-race
	$(MAKE) test-hostile
	$(MAKE) bench-test
	USAGE_ENTRIES=1000000 go test -count=1 -timeout 60m -v -run '^TestUsageOfManyEntries$$' ./cmd/svc
	$(SHARED) go test -count=1 -timeout 30m ./functions/settle -run TestFaultSchedules -schedules 1000
	$(MAKE) test-faults SEED=1 SCHEDULES=450
	$(MAKE) test-api
	REQUESTS=2000 go test -count=1 -timeout 30m -run '^TestHostile' ./test/acceptance
	$(MAKE) lint sam-build checkov emulator
	$(MAKE) test-clients

# The packages that take minutes: simulations, and tests that render.
QUICK_SKIP   := ^(TestExactUnderLoad|TestTimeout|TestNothingStored)$$
QUICK_ACCEPT := ^(TestSendForReal|TestBurnerEmailShield|TestLocationProvider|TestPictures|TestPDFBase64|TestOwnRates|TestDocs|TestScheduledFunctions)$$

test-quick: ## the tests between edits, under 60 s: build, unit tests, policy, one acceptance test for each function
	go build ./...
	go test -skip '$(QUICK_SKIP)' ./test/policy ./shared/credit ./cmd/svc \
		$$(go list ./cmd/... ./functions/... ./shared/... | grep -v -e '/functions/pdf$$' -e '/functions/pdf/render/browser')
	go test -run '$(QUICK_ACCEPT)' ./test/acceptance

test-faults: ## money under faults: 10,000 random schedules of the compiled functions; SEED= and SCHEDULES= choose others
	SEED=$(or $(SEED),$(FAULT_SEED)) SCHEDULES=$(or $(SCHEDULES),10000) go test -count=1 -timeout 4h -v ./test/acceptance/faults

acceptance: ## the contract over HTTP; BASE_URL and STAGE choose a deployed stack, where ACCEPT_SENDS=1 permits one SMS
	go test -count=1 -timeout 15m -v ./test/acceptance

test-api: ## the OpenAPI document against the local stack with Schemathesis; API_EXAMPLES=100 for each operation and phase
	API_EXAMPLES=$(or $(API_EXAMPLES),100) API_SEED=$(or $(API_SEED),$(shell date +%s)) \
		go test -count=1 -timeout 30m -v -run '^TestSchemathesis$$' ./test/acceptance

test-clients: .local/clients/.ready $(NPM) ## the client packages of a release: built, calling every operation, and repeating no SMS without a key
	@php -r 'require "GuzzleHttp/autoload.php";' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install -y -qq --no-install-recommends \
		php-cli php-curl php-mbstring php-guzzlehttp-guzzle; } || { echo "Please install PHP with php-curl, php-mbstring and php-guzzlehttp-guzzle."; exit 1; }
	go test -count=1 -tags clients -timeout 15m ./test/clients

# OpenAPI Generator is a jar of Maven.
.local/clients/.ready: tools/clients/requirements.txt
	python3 -m venv --clear $(@D)/venv
	$(call pip_install,$(@D)/venv,$<)
	mvn --batch-mode --quiet dependency:copy -Dartifact=org.openapitools:openapi-generator-cli:7.17.0 -DoutputDirectory=$(CURDIR)/$(@D)
	touch $@

fuzz: ## every decoder with INPUTS=10000000 in all, the same for each, then REQUESTS=100000 over HTTP; SEED= repeats the latter
	@targets=$$(git grep --untracked -oE '^func Fuzz\w+' -- '*_test.go'); \
	inputs=$$(($(or $(INPUTS),10000000) / $$(wc -l <<<"$$targets") + 1)); \
	while IFS=: read -r file target; do \
		nice go test "./$$(dirname "$$file")" -run '^$$' -fuzz "^$${target#func }$$" -fuzztime "$${inputs}x" </dev/null || failed=1; \
	done <<<"$$targets"; \
	exit "$${failed:-0}"
	REQUESTS=$(or $(REQUESTS),100000) SEED=$(SEED) nice go test -count=1 -timeout 90m -v -run '^TestHostile' ./test/acceptance

## Check: everything that needs no running stack

VENV := .local/venv
SAM  := $(VENV)/bin/sam
LINT := .local/bin/golangci-lint
NPM  := .local/npm/.ready

# sam needs a region, even to validate, and sends telemetry unless a variable forbids that.
export AWS_DEFAULT_REGION ?= eu-west-1
export SAM_CLI_TELEMETRY  := 0

.PHONY: check format lint template openapi sam-build policy pages checkov vulnerabilities browser-age emulator

check: format policy template openapi ## formatting, template, OpenAPI document, policies; make lint sam-build checkov are jobs of their own

format:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -d $$(git ls-files '*.go'); exit 1; }

lint: $(LINT) ## golangci-lint, go vet's analyses among them
	$(LINT) run ./...

# Each check finds errors that the others miss: sam validate, its lint, and cfn-lint over the template that SAM generates.
template: $(VENV)/.ready
	$(SAM) validate
	$(SAM) validate --lint
	$(VENV)/bin/python tools/translate.py template.yaml > .local/translated.yaml
	$(VENV)/bin/cfn-lint .local/translated.yaml

openapi: $(NPM)
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true .local/npm/node_modules/.bin/redocly lint openapi.yaml --config tools/redocly.yaml --format=stylish

sam-build: $(VENV)/.ready ## the functions as they ship, in .aws-sam/build
	$(SAM) build

# Checkov has an environment of its own, because its requirements and those of sam disagree. Checkov passes over a workflow
# with a permission that it does not know: it reads copies without that line, and each of them has to be in its report.
# Checkov cannot parse the template's merges, and exits with 0 then: it reads the translation, and has to have checked something.
checkov: .local/checkov/.ready $(VENV)/.ready ## known weaknesses of the template and the workflows; tools/checkov.yaml has the reasons of what stays
	$(VENV)/bin/python tools/translate.py template.yaml > .local/translated.yaml
	.local/checkov/bin/checkov --config-file tools/checkov.yaml --framework cloudformation --file .local/translated.yaml --quiet \
		> .local/checkov/template.txt; status=$$?; cat .local/checkov/template.txt; \
		[ $$status = 0 ] && grep -q '^Passed checks: [1-9]' .local/checkov/template.txt
	@rm -rf .local/checkov/read && mkdir -p .local/checkov/read/.github/workflows
	@for file in .github/workflows/*.yml; do sed '/^ *attestations: /d' $$file > .local/checkov/read/$$file; done
	.local/checkov/bin/checkov --config-file tools/checkov.yaml --framework github_actions --directory .local/checkov/read > .local/checkov/report.txt \
		|| { cat .local/checkov/report.txt; exit 1; }
	@for file in .github/workflows/*.yml; do grep -q "File: /$$file:" .local/checkov/report.txt || { echo "Checkov did not read $$file" >&2; exit 1; }; done

vulnerabilities: ## known vulnerabilities of Go and of the modules, in functions that the product calls; asks Go's vulnerability database
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

browser-age: ## fails while a newer browser for PDFs is released, or the one in use has known vulnerabilities; asks npm's registry
	@used=$$(node -p 'require("./layers/chromium/package.json").dependencies["@sparticuz/chromium"]') && \
		newest=$$(npm view @sparticuz/chromium version) && \
		{ [ "$$used" = "$$newest" ] || { echo "the browser is $$used, $$newest is released: docs/supply-chain.md" >&2; exit 1; }; }
	npm --prefix layers/chromium audit --package-lock-only

policy test-quick: $(VENV)/.ready $(NPM)

policy:
	go test ./test/policy

pages: $(VENV)/.ready ## the computed sections of docs/costs.md, docs/scale.md, docs/decisions.md and README.md
	go test -count=1 -run '^(TestCosts|TestDecisions)$$' ./test/policy -update

$(VENV)/.ready: tools/requirements.txt
	python3 -m venv --clear $(VENV)
	$(call pip_install,$(VENV),tools/requirements.txt)
	touch $@

# Tools of npm, fixed by their lock file; no install script runs.
$(NPM): tools/npm/package-lock.json
	@mkdir -p $(@D)
	cp tools/npm/package.json tools/npm/package-lock.json $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

emulator: $(VENV)/.ready .local/moto/.ready ## the pages' commands, the workflows and the rehearsal on moto, an emulator of AWS; minutes
	go build -o .local/bin/ ./cmd/svc ./tools/deploy
	$(VENV)/bin/python tools/translate.py template.yaml > .local/translated.yaml
	.local/moto/bin/python -W ignore tools/emulator.py .local/bin/svc .local/translated.yaml
	.local/moto/bin/python -W ignore tools/pages.py .local/bin/deploy .local/bin/svc .local/translated.yaml

.local/schemathesis/.ready .local/checkov/.ready .local/moto/.ready: .local/%/.ready: tools/%.txt
	python3 -m venv --clear $(@D)
	$(call pip_install,$(@D),$<)
	touch $@

$(LINT): tools/go/go.mod
	go build -C tools/go -o ../../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

## Release

VERSION ?= $(shell awk '/^## \[?[0-9]/ { gsub(/[][]/, "", $$2); print $$2; exit }' CHANGELOG.md)

.PHONY: package redeploy smoke-aws

redeploy: ## a stage again, around the tables that a deleted stack left: STAGE=prod REGION=eu-west-1 (docs/uninstall.md)
	go run ./tools/deploy redeploy $(STAGE) $(REGION)

smoke-aws: ## the life of a stage "smoke" in your AWS account, an hour, under 1 USD; writes a dated report: REGION=eu-west-1
	go run ./tools/deploy smoke $(REGION)

package: ## zips, template, svc, clients, bill of materials and checksums in dist/; the same source gives the same bytes
	go run ./tools/release $(VERSION) dist

# sam build calls build-<logical ID> with ARTIFACTS_DIR.
build-%Function:
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags=-s \
		-o $(ARTIFACTS_DIR)/bootstrap ./functions/$(shell echo '$*' | sed 's|\(.\)\([A-Z]\)|\1/\2|g' | tr A-Z a-z)

# tools/release calls build-client-<language> with ARTIFACTS_DIR and VERSION.
build-client-%: .local/clients/.ready $(NPM)
	tools/clients/build.sh $* $(ARTIFACTS_DIR) $(VERSION)

include functions/barcode/barcode.mk
include functions/pdf/pdf.mk
include bench/bench.mk
