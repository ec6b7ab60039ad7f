## PDFs: the browser, hostile documents, the gallery, the benchmark

.PHONY: layer poppler test-hostile gallery-pdf bench-pdf bench-gotenberg build-PdfRenderFunction

test: poppler
gallery: gallery-pdf
bench: bench-pdf

layer: ## the browser for PDFs, unpacked in .local as on Lambda; prints its size
	go run ./local layer

# The tests measure PDFs with a reader that is not the product's.
poppler:
	@command -v pdftotext > /dev/null || { \
		test "$$(id -u)" = 0 || { echo 'poppler is missing: apt-get install poppler-utils, or brew install poppler' >&2; exit 1; }; \
		apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends poppler-utils; }

test-hostile: poppler ## every hostile document, a storm of kills, 500 renders: about half an hour
	go test -tags hostile -count=1 -p 1 -timeout 60m -v ./functions/pdf/...

gallery-pdf: poppler
	JAIL=off go test -count=1 -run '^TestGallery$$' ./functions/pdf/render -update

# Beside the same browser driven by nothing but the bare protocol calls.
bench-pdf:
	go test -run '^$$' -bench . -benchtime 20x ./functions/pdf/render/browser

# Gotenberg's module comes from Go's registry. Its folder is built in place, because "go install" asks for a list of versions,
# which not every registry gives.
GOTENBERG_MODULE := github.com/gotenberg/gotenberg/v8@v8.36.0

bench-gotenberg: ## PDFs through the whole stack compared with Gotenberg 8; without its module GOTENBERG_SOURCE= names a source tree
	@source=$$(go mod download -json $(GOTENBERG_MODULE) 2> /dev/null | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
		if [ -n "$$source" ]; then echo "Gotenberg: the module $(GOTENBERG_MODULE)"; \
		elif [ -n "$(GOTENBERG_SOURCE)" ]; then source='$(abspath $(GOTENBERG_SOURCE))'; echo "Gotenberg: the source tree $$source"; \
		else echo 'Go has no module $(GOTENBERG_MODULE) here: GOTENBERG_SOURCE= names a source tree of Gotenberg 8' >&2; exit 1; fi; \
		go build -C "$$source" -o $(CURDIR)/.local/bin/gotenberg-chromium ./cmd/gotenberg-chromium
	@PATH="$(CURDIR)/.local/bin:$$PATH" go test -run '^$$' -bench '^BenchmarkGotenberg$$' -benchtime 1x -timeout 0 ./test/acceptance/bench

# The browser is an x86-64 program, so is the function that starts it.
build-PdfRenderFunction:
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags=-s -o $(ARTIFACTS_DIR)/bootstrap ./functions/pdf/render
