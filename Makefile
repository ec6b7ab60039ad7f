SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

## Check: everything that needs no running stack

VENV := .local/venv
SAM  := $(VENV)/bin/sam
LINT := .local/bin/golangci-lint

# sam asks for a region, even to validate, and reports home unless told not to.
export AWS_DEFAULT_REGION ?= eu-west-1
export SAM_CLI_TELEMETRY  := 0

.PHONY: check format vet lint template sam-build policy

check: format vet template sam-build policy lint ## formatting, vet, linters, template, sam build, policies

format:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -d $$(git ls-files '*.go'); exit 1; }

vet:
	go vet ./...

lint: $(LINT)
	$(LINT) run ./...

# Each finds what the others miss: sam validate, its lint, and cfn-lint over what SAM makes of the template.
template: $(VENV)/.ready
	$(SAM) validate
	$(SAM) validate --lint
	$(VENV)/bin/python tools/translate.py template.yaml > .local/translated.yaml
	$(VENV)/bin/cfn-lint .local/translated.yaml

sam-build: $(VENV)/.ready ## the functions as they ship, in .aws-sam/build
	$(SAM) build

policy: $(VENV)/.ready
	go test ./policy

$(VENV)/.ready: tools/requirements.txt
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement tools/requirements.txt
	touch $@

$(LINT): tools/go.mod
	go build -C tools -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# sam build calls build-<logical ID> with ARTIFACTS_DIR.
build-%Function:
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -trimpath -tags lambda.norpc -ldflags=-s \
		-o $(ARTIFACTS_DIR)/bootstrap ./functions/$(shell echo '$*' | tr A-Z a-z)
