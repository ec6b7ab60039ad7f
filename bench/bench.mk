## Measure: the module bench/, which make test neither compiles nor lints

.PHONY: bench bench-project bench-gotenberg bench-test load soak overload mutation .local/bin/load

bench: ## cold start, size and throughput compared with a hello function; look-ups compared with a plain map; warm requests
	@go test -C bench -run '^$$' -bench '^BenchmarkFunctions$$' -benchtime 1x -timeout 0 ./compare
	go test -run '^$$' -bench . ./functions/security/disposable
	go test -run '^$$' -bench '^BenchmarkLookups$$' ./test/acceptance

bench-project: ## RATE=3000 paid SMS a second of one project, by a model of DynamoDB; SEED=1; takes an hour
	go test -C bench -count=1 -timeout 4h -v -run '^TestCeiling$$' ./ceiling -seed $(or $(SEED),1) -rate $(or $(RATE),3000)

bench-test: helpers ## the module's own tests: its load table, the model of DynamoDB's limits, the mutants
	go vet -C bench ./...
	$(SHARED) go test -C bench -vet=off -count=1 -timeout 4h ./...

# Gotenberg's module comes from Go's registry. Its folder is built in place, because "go install" asks for a list of versions,
# which not every registry gives.
GOTENBERG_MODULE := github.com/gotenberg/gotenberg/v8@v8.36.0

bench-gotenberg: ## PDFs through the whole stack compared with Gotenberg 8; without its module GOTENBERG_SOURCE= names a source tree
	@source=$$(go mod download -json $(GOTENBERG_MODULE) 2> /dev/null | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
		if [ -n "$$source" ]; then echo "Gotenberg: the module $(GOTENBERG_MODULE)"; \
		elif [ -n "$(GOTENBERG_SOURCE)" ]; then source='$(abspath $(GOTENBERG_SOURCE))'; echo "Gotenberg: the source tree $$source"; \
		else echo 'Go has no module $(GOTENBERG_MODULE) here: GOTENBERG_SOURCE= names a source tree of Gotenberg 8' >&2; exit 1; fi; \
		go build -C "$$source" -o $(CURDIR)/.local/bin/gotenberg-chromium ./cmd/gotenberg-chromium
	@PATH="$(CURDIR)/.local/bin:$$PATH" go test -C bench -run '^$$' -bench '^BenchmarkGotenberg$$' -benchtime 1x -timeout 0 ./compare

# Load: k6 against the local stack.
K6   := .local/bin/k6
LOAD := .local/bin/load

load: $(K6) $(LOAD) ## each operation beside a hello function, then all at once; EACH=8s MIX=60s
	@exec $(LOAD) each
	@exec $(LOAD) mix

soak: $(K6) $(LOAD) ## all operations for SOAK=20m: every process must keep its size
	@exec $(LOAD) soak

overload: $(K6) $(LOAD) ## ten times what the stack can do: quick refusals, nothing charged for them, back within seconds
	@exec $(LOAD) overload

$(LOAD):
	@go build -C bench -o ../$@ ./load

# A tool that is run and never linked: its licence is the AGPL.
$(K6): tools/k6/go.mod
	go build -C tools/k6 -o ../../$(K6) go.k6.io/k6

mutation: ## each small change of money, limits, units, decimals and addresses must fail a test; PKG=folders and FILES=names choose
	nice go run -C bench ./mutation -files '$(FILES)' $(PKG)
