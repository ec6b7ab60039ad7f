## PDFs: the browser, hostile documents, the gallery, the benchmark

.PHONY: layer browser browser-drill fonts patch-fonts pack-fonts poppler test-unjailed test-hostile gallery-pdf bench-pdf build-PdfRenderFunction

gallery: gallery-pdf
bench: bench-pdf

layer: ## the browser for PDFs, unpacked in .local as on Lambda; prints its size
	go run ./local/layer

fonts: ## the patch of the layer's fonts, after a change of fonts.txt, fonts.py or a font's version; with Python
	@mkdir -p .local && folder=$$(mktemp -d .local/fonts.XXXXXX) && FONTS=pack-fonts layers/chromium/build.sh $$folder; \
		status=$$?; rm -rf $$folder; exit $$status

test-fonts: fonts ## that the patch of the layer's fonts is what fonts.py makes
	git diff --exit-code -- layers/chromium/fonts.sum

# What build.sh calls with FOLDER.
patch-fonts:
	go run ./tools/fonts $(FOLDER)

pack-fonts:
	python3 -m venv --clear .local/fonts
	$(call pip_install,.local/fonts,layers/chromium/requirements.txt)
	.local/fonts/bin/python layers/chromium/fonts.py $(FOLDER)

# What make browser runs with the new browser.
BROWSER_TESTS ?= test-hostile gallery-pdf

browser: ## another browser for PDFs: fetched, verified, measured, tested: VERSION=153.0.0 of npm, or 156.0.8078.79 of Chrome for Testing
	@[ "$(origin VERSION)" = "command line" ] || { echo "make browser needs VERSION=" >&2; exit 2; }
	layers/chromium/pin.sh $(VERSION)
	$(MAKE) --no-print-directory layer
	go test -run '^TestStartLine$$' -count=1 -v ./functions/pdf/render/browser
	$(if $(BROWSER_TESTS),$(MAKE) --no-print-directory $(BROWSER_TESTS))

browser-drill: ## make browser with Debian's newest chromium-headless-shell in the layout of Chrome for Testing, from a server of this machine
	layers/chromium/drill.sh

# The tests measure PDFs with a reader that is not the product's.
poppler:
	@command -v pdftotext > /dev/null || { \
		test "$$(id -u)" = 0 || { echo 'poppler is missing: apt-get install poppler-utils, or brew install poppler' >&2; exit 1; }; \
		apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends poppler-utils; }

# The tests of the browser's processes and names run in the jail, where the kernel denies what Lambda denies, and without it.
UNJAILED := ^(TestIsolate|TestKilled|TestClose|TestOrphans|TestParentKilled|TestEgressOfNames)$$

test-units: test-unjailed
test-unjailed: poppler
	JAIL=off go test -vet=off -timeout 4h -run '$(UNJAILED)' ./functions/pdf/render/browser

# The tests that the variable makes longer, or adds.
HOSTILE := ^(TestHostile|TestEgress|TestEgressUnlocked|TestFreeze|TestGeometryOverridesDocument|TestKilled|TestFiveHundred)$$

test-hostile: poppler ## every hostile document, a storm of kills, 500 renders
	EVERYTHING=1 go test -vet=off -count=1 -p 1 -timeout 4h -v -run '$(HOSTILE)' ./functions/pdf/render/...
	EVERYTHING=1 JAIL=off go test -vet=off -count=1 -timeout 4h -v -run '^TestKilled$$' ./functions/pdf/render/browser

# veraPDF, a validator of PDF/UA, is a jar of Maven. Java needs more than the jail has.
VERAPDF := .local/verapdf/greenfield-apps-1.28.2.jar
$(VERAPDF):
	mvn --batch-mode --quiet dependency:copy -Dartifact=org.verapdf.apps:greenfield-apps:1.28.2 -DoutputDirectory=$(CURDIR)/$(@D)

test-accessible: poppler $(VERAPDF) ## that veraPDF accepts the PDFs that claim PDF/UA-1, and refuses the others for the expected clause
	JAIL=off VERAPDF=$(CURDIR)/$(VERAPDF) go test -vet=off -count=1 -timeout 4h -run '^TestAccessible$$' ./functions/pdf/render/browser

gallery-pdf: poppler
	JAIL=off go test -count=1 -run '^TestGallery$$' ./functions/pdf/render -update

# Beside the same browser driven by nothing but the bare protocol calls.
bench-pdf:
	go test -run '^$$' -bench . -benchtime 20x ./functions/pdf/render/browser

# The browser is an x86-64 program, so is the function that starts it.
build-PdfRenderFunction:
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags=-s -o $(ARTIFACTS_DIR)/bootstrap ./functions/pdf/render
