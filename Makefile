SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

# Tests, tools and functions share compiled packages: the functions ship without paths, without net/rpc and without C.
export GOFLAGS     := $(GOFLAGS) -trimpath -tags=lambda.norpc
export CGO_ENABLED ?= 0

# pip_install installs a file of requirements into an environment. The file names everything, which pip check checks;
# Python compiles what a tool imports, once.
pip_install = $(1)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --requirement $(2) && $(1)/bin/pip check >&2
unexport PYTHONDONTWRITEBYTECODE

# Tools that several targets need.
VENV := .local/venv
SAM  := $(VENV)/bin/sam
LINT := .local/bin/golangci-lint
NPM  := .local/npm/.ready

## Run: on this machine, without an AWS account and without containers

LOCAL := .local/bin/local

.PHONY: help run invoke build lists test test-quick acceptance fuzz

help: ## this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# exec: no shell runs in between. Ctrl-C reaches the stack itself, and make passes TERM on. A SIGINT
# that is sent to make alone (kill -INT) is not passed on: end the stack with Ctrl-C or TERM.
run: ## the whole stack until Ctrl-C; PORT=8080 chooses the gateway's port, JAIL=off runs functions unconfined
	@local/check.sh
	@$(MAKE) --no-print-directory -j 2 $(LOCAL) $(if $(AWS_ENDPOINT_URL_DYNAMODB),,$(ENGINE))
	@exec $(LOCAL) run

invoke: $(LOCAL) ## one event through a compiled function: FN=sms EVENT=events/sms-send-managed.json
	@exec $(LOCAL) invoke $(FN) $(EVENT)

# DynamoDB Local is fetched beside the first compilation: Maven takes as long. local/engine does the same where it is absent.
ENGINE := .local/dynamodb/$(shell sed -n 's/^const version = "\(.*\)"/\1/p' local/engine/engine.go)
$(ENGINE):
	@echo "fetching DynamoDB Local (48 MB, once)" >&2
	@mvn --batch-mode --quiet --file local/engine/pom.xml dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$@.first
	@test -d $@ || mv $@.first $@

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

## Test: make test before a commit, make test-full for the rest

# Every log of make test, for one search through all of them for secrets.
TEST_LOGS := $(CURDIR)/.local/test-logs
# These always run, because they depend on more than Go's cache of test results knows: they compile the programs that they
# run, or run in the jail as a whole. Another package runs again when its code, a file that it reads or a variable changes.
HOSTS    := ./local ./local/lambda ./local/gateway ./local/jail ./local/stack ./local/build ./functions/pdf ./functions/pdf/render
SCHEDULE := ./test/acceptance ./test/acceptance/faults
# The longest packages start first, so that no long test runs alone at the end.
FIRST = ./test/policy ./functions/pdf/render/browser ./shared/wallet ./shared/books ./cmd/svc
UNITS = $(FIRST) $$(go list ./... | grep -vxF "$$(go list $(FIRST) $(SCHEDULE) $(HOSTS))")
# make test leaves these tests to make test-full: each takes long, and what they prove seldom breaks. The last three have
# shares of their own there, with larger numbers.
LONG := ^(TestAddVendor|TestSAMLocalReachesTheLocalStack|TestParameterPublishes|TestSamples|TestSamplesReportErrors|TestFonts|TestFamilies|TestSchemathesis|TestFaultSchedules|TestUsageOfManyEntries)$$

# The packages' tests share one DynamoDB Local, each with tables of its own.
SHARED := .local/bin/steps engine
# Measures a share for make test-times.
TIMES  := .local/bin/steps run
# The linter vets. A test that hangs ends after hours, on any machine.
GOTEST := go test -json -vet=off -p 2 -timeout 4h

test: export TEST_LOGS := $(TEST_LOGS)
test: helpers ## before a commit: format, lint of what changed, template, OpenAPI, policies, unit, store and acceptance tests
	@rm -rf $(TEST_LOGS) && mkdir -p $(TEST_LOGS)
	$(TIMES) prepare $(MAKE) --no-print-directory --jobs=8 compile downloads format lint-changed template openapi poppler barcode-tools
	@$(SHARED) $(MAKE) --no-print-directory $(SHARES)
	LEAKS=$(TEST_LOGS) go test -vet=off -count=1 -v ./test/acceptance

# One after another: the time limits of functions and of their calls count beside other work.
SHARES := test-hosts test-units test-contract test-schedules
.PHONY: $(SHARES)
test-units:
	$(TIMES) $@ $(SHARED) $(GOTEST) -skip '$(LONG)' $(UNITS)
test-hosts:
	$(TIMES) $@ $(SHARED) $(GOTEST) -count=1 $(HOSTS)
test-contract:
	$(TIMES) $@ $(GOTEST) -count=1 -skip '$(LONG)' ./test/acceptance
test-schedules:
	SEED=1 SCHEDULES=$(or $(SCHEDULES),5) $(TIMES) $@ $(GOTEST) -count=1 ./test/acceptance/faults

# The programs that the next steps need are compiled first. The packages and their tests compile while the tests' engine,
# browser and tools arrive.
.PHONY: helpers compile downloads
helpers:
	@mkdir -p .local/bin
	go build -o .local/bin/ ./test/steps ./local/layer
compile: programs
	@go list -export -test ./... > /dev/null
downloads:
	$(SHARED) true
	.local/bin/layer

# What make test does not run; a share that fails does not end the others. The variables choose smaller numbers than the
# targets on their own have. Nothing in the shares of BESIDE has a limit of time: two of them run at a time.
BESIDE := emulator lint sam-build checkov test-fonts test-leases test-usage
ALONE  := test-clients test-accessible test-long test-faults test-requests test-api test-hostile test-race bench-test

.PHONY: test-full test-times $(filter test-%,$(BESIDE) $(ALONE))
test-full: export SCHEDULES    := $(or $(SCHEDULES),60)
test-full: export LEASES       := $(or $(LEASES),150)
test-full: export REQUESTS     := $(or $(REQUESTS),2000)
test-full: export ENTRIES      := $(or $(ENTRIES),40000)
test-full: export API_EXAMPLES := $(or $(API_EXAMPLES),10)
test-full: export API_SEED     := $(or $(API_SEED),1)
test-full: export RENDER_SECONDS := $(or $(RENDER_SECONDS),5)
test-full: helpers poppler barcode-tools $(VENV)/.ready $(NPM) ## what make test leaves out: race detector, clients, emulator, schedules, hostile input
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target $(addprefix full-,$(BESIDE)); beside=$$?; \
		$(MAKE) --no-print-directory --keep-going $(addprefix full-,$(ALONE)) && exit $$beside
full-%:
	@echo "make $*"
	@$(TIMES) $* $(MAKE) --no-print-directory $*

test-times: helpers ## what takes long in make test and make test-full, in seconds of the last run, and what only that proves
	@.local/bin/steps table

test-long: helpers poppler barcode-tools $(VENV)/.ready $(NPM) ## the tests that make test leaves out
	go test -vet=off -count=1 -p 2 -timeout 4h -run '$(LONG)' ./test/policy ./functions/docs/samples ./functions/pdf/render/browser

# The race detector sees nothing in programs that a test compiles and starts, which is all that most packages left out do;
# barcodes and the limits of documents start no goroutine. It multiplies a process's memory, which the renderer of the
# browser's package counts.
RACELESS := $(SCHEDULE) ./test/policy ./tools/... ./local ./local/build ./functions/pdf ./functions/pdf/render ./functions/pdf/render/browser \
	./functions/pdf/render/limits ./functions/barcode/...

test-race: export GORACE := atexit_sleep_ms=0
test-race: export CGO_ENABLED := 1
test-race: helpers $(VENV)/.ready $(NPM) ## the unit tests and the local hosts' under the race detector
	$(SHARED) go test -race -vet=off -count=1 -p 2 -timeout 4h -skip '$(LONG)' $$(go list ./... | grep -vxF "$$(go list $(RACELESS))")

test-leases: ## LEASES=1000 schedules of leases in virtual time, with crashes, frozen instances and clocks that differ
	VIRTUAL=1 $(MAKE) test-faults SCHEDULES=$(or $(LEASES),1000)

test-requests: ## REQUESTS=100000 hostile requests over HTTP; SEED= repeats them
	REQUESTS=$(or $(REQUESTS),100000) SEED=$(SEED) go test -vet=off -count=1 -timeout 4h -v -run '^TestHostile' ./test/acceptance

test-usage: ## svc usage over ENTRIES=1000000 charges, in bounded memory
	USAGE_ENTRIES=$(or $(ENTRIES),1000000) go test -vet=off -count=1 -timeout 4h -v -run '^TestUsageOfManyEntries$$' ./cmd/svc

# The packages that take minutes: simulations, and tests that render.
QUICK_SKIP   := ^(TestExactUnderLoad|TestTimeout|TestNothingStored)$$|$(LONG)
QUICK_ACCEPT := ^(TestSendForReal|TestBurnerEmailShield|TestLocationProvider|TestPictures|TestPDF|TestOwnRates|TestDocs|TestScheduledFunctions)$$

test-quick: ## the tests between edits, under 60 s: build, unit tests, policy, one acceptance test for each function
	go build ./...
	go test -skip '$(QUICK_SKIP)' ./test/policy ./shared/wallet ./shared/books ./cmd/svc \
		$$(go list ./cmd/... ./functions/... ./shared/... | grep -v -e '/functions/pdf$$' -e '/functions/pdf/render/browser')
	go test -run '$(QUICK_ACCEPT)' ./test/acceptance

test-faults: ## money under faults: 10,000 random schedules; SEED= and SCHEDULES= choose others
	SEED=$(or $(SEED),$(shell date +%s)) SCHEDULES=$(or $(SCHEDULES),10000) go test -vet=off -count=1 -timeout 4h -v \
		./test/acceptance/faults

acceptance: ## the contract over HTTP; BASE_URL and STAGE choose a deployed stack, where ACCEPT_SENDS=1 permits one SMS
	go test -count=1 -timeout 15m -v ./test/acceptance

test-api: ## the OpenAPI document against the local stack with Schemathesis; API_EXAMPLES=100 for each operation and phase
	API_EXAMPLES=$(or $(API_EXAMPLES),100) API_SEED=$(or $(API_SEED),$(shell date +%s)) \
		go test -vet=off -count=1 -timeout 4h -v -run '^TestSchemathesis$$' ./test/acceptance

test-clients: .local/clients/.ready $(NPM) ## the client packages of a release: built, calling every operation, and repeating no SMS without a key
	@php -r 'require "GuzzleHttp/autoload.php";' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends \
		php-cli php-curl php-mbstring php-guzzlehttp-guzzle; } || { echo "Please install PHP with php-curl, php-mbstring and php-guzzlehttp-guzzle."; exit 1; }
	go test -vet=off -count=1 -tags clients -timeout 4h ./test/clients

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
	nice $(MAKE) test-requests

## Check: everything that needs no running stack

# sam needs a region, even to validate, and sends telemetry unless a variable forbids that.
export AWS_DEFAULT_REGION ?= eu-west-1
export SAM_CLI_TELEMETRY  := 0

.PHONY: check format lint lint-changed template openapi sam-build policy pages checkov outside audit-npm audit-pip pins vulnerabilities go-age browser-age emulator dashboard

check: format policy template openapi ## formatting, template, OpenAPI document, policies; make test-full has lint, sam-build and checkov

format:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -d $$(git ls-files '*.go'); exit 1; }

lint: $(LINT) ## golangci-lint, go vet's analyses among them
	$(LINT) run ./...

# The packages with a file that differs from the main branch. Without such a file the linter is not even compiled.
lint-changed:
	@changed=$$({ git diff --name-only "$$(git merge-base HEAD origin/main 2> /dev/null || echo HEAD)"; \
		git ls-files --others --exclude-standard; } | sed -n 's|^\(.*\)/[^/]*\.go$$|$(CURDIR)/\1|p' | sort -u); \
	packages=$$(go list -f '{{.Dir}}' ./... | grep -xF "$$changed"); \
	[ -z "$$changed" ] || [ -z "$$packages" ] || { make --no-print-directory $(LINT) && $(LINT) run $$packages; }

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

# .local/outside.md has the output of the red checks, for an issue. It is empty where all are green, and absent before that.
OUTSIDE := vulnerabilities go-age browser-age audit-npm audit-pip pins

outside: ## every check of what comes from outside and ages; a check that nobody answers is red
	@mkdir -p .local && rm -f .local/outside.md && : > .local/outside.part
	@for check in $(OUTSIDE); do \
		if $(MAKE) --no-print-directory $$check > .local/outside.log 2>&1; then echo "make $$check: green"; else \
			printf '`make %s` is red:\n\n```\n%s\n```\n\n' $$check "$$(tail -40 .local/outside.log)" | tee -a .local/outside.part; fi; \
	done; mv .local/outside.part .local/outside.md; [ ! -s .local/outside.md ]

audit-npm: ## known vulnerabilities of every list of npm; a registry without an answer is red
	@for list in $$(git ls-files '*package-lock.json'); do echo "$$list" && npm --prefix "$$(dirname "$$list")" audit --package-lock-only || failed=1; done; exit $${failed:-0}

# --strict: what the service does not know, or does not answer, is an error.
audit-pip: .local/audit/.ready ## known vulnerabilities of every list of pip; a list without an answer is red
	@for list in $$(git ls-files '*requirements.txt' 'tools/*.txt'); do echo "$$list" && \
		.local/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement "$$list" || failed=1; done; exit $${failed:-0}

pins: ## every pin with its age, in .local/pins.md; fails for a pin that is behind without a reason in tools/held-pins.json, or without an answer
	python3 tools/pins.py > .local/pins.md || { cat .local/pins.md; exit 1; }

vulnerabilities: ## known vulnerabilities of Go and of the modules, in functions that the product calls; asks Go's vulnerability database
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

go-age: ## fails while a newer patch of Go is released than go.mod names, or no proxy answers; asks Go's module proxy
	@used=$$(awk '$$1 == "toolchain" { print $$2 }' go.mod); \
		newest=$$(go list -m -versions golang.org/toolchain | grep -oE "$${used%.*}\.[0-9]+\.linux-amd64" | sort -V | tail -1); \
		[ -n "$$newest" ] || { echo "no module proxy answered: the age of $$used is not known" >&2; exit 1; }; \
		[ "$$used" = "$${newest%.linux-amd64}" ] || \
			{ echo "releases are built with $$used, $${newest%.linux-amd64} is released: go mod edit -toolchain=$${newest%.linux-amd64}" >&2; exit 1; }

browser-age: layer ## fails while the layer's browser is 14 days behind Chrome's stable; asks Chrome and apt
	@[ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || apt-get update --quiet --quiet
	python3 tools/browser_age.py "$$(ls -t .local/layer/*/chromium/headless_shell | head -1)"

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
	$(VENV)/bin/python tools/translate.py template.yaml > .local/emulated.yaml
	.local/moto/bin/python -W ignore tools/emulator.py .local/bin/svc .local/emulated.yaml
	.local/moto/bin/python -W ignore tools/pages.py .local/bin/deploy .local/bin/svc .local/emulated.yaml

dashboard: .local/dashboard/.ready $(VENV)/.ready ## docs/dashboard.png again, from the template and the logs of a running make run
	$(VENV)/bin/python tools/translate.py template.yaml > .local/translated.yaml
	.local/dashboard/bin/python tools/dashboard.py .local/translated.yaml .local/logs docs/dashboard.png

.local/schemathesis/.ready .local/checkov/.ready .local/moto/.ready .local/audit/.ready .local/dashboard/.ready: .local/%/.ready: tools/%.txt
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

# The Go of go.mod. A GOTOOLCHAIN of the environment stands, and tools/release refuses another Go.
package: export GOTOOLCHAIN := $(or $(GOTOOLCHAIN),$(shell awk '$$1 == "toolchain" { print $$2 }' go.mod))
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
