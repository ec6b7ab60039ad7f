## Barcodes: reference decoders and encoders, the gallery, the benchmark

BARCODE       := functions/barcode
BARCODE_TOOLS := .local/barcode

.PHONY: gallery bench barcode-tools barcode-vectors gallery-barcode bench-barcode zint

test-quick: barcode-tools
gallery: gallery-barcode ## docs/gallery: what the functions draw
bench: bench-barcode ## how fast, against others

barcode-tools: $(BARCODE_TOOLS)/venv/.ready

$(BARCODE_TOOLS)/venv/.ready: $(BARCODE)/testdata/requirements.txt
	python3 -m venv --clear $(@D)
	$(call pip_install,$(@D),$<)
	touch $@

$(BARCODE_TOOLS)/node_modules/.ready: $(BARCODE)/testdata/package-lock.json
	mkdir -p $(BARCODE_TOOLS)
	cp $(BARCODE)/testdata/package.json $< $(BARCODE_TOOLS)
	npm ci --prefix $(BARCODE_TOOLS) --ignore-scripts --no-audit --no-fund
	touch $@

# zint as a program and as a library; Debian has both.
zint:
	@command -v zint > /dev/null && test -e /usr/include/zint.h || { \
		test "$$(id -u)" = 0 || { echo 'zint is missing: apt-get install zint libzint-dev' >&2; exit 1; }; \
		apt-get install --quiet --yes zint libzint-dev; }

# Writes the golden vectors with zint and bwip-js.
barcode-vectors: $(BARCODE_TOOLS)/node_modules/.ready zint
	cd $(BARCODE_TOOLS) && node $(CURDIR)/$(BARCODE)/testdata/vectors.mjs

gallery-barcode:
	go test -count=1 -run '^TestGalleryIsCurrent$$' ./$(BARCODE) -update

# Code 128 as PNG and QR codes beside libzint in the same run; then requests through the compiled function.
bench-barcode: zint
	mkdir -p $(BARCODE_TOOLS)
	cc -O2 -Wall -o $(BARCODE_TOOLS)/zint $(BARCODE)/testdata/zint.c -lzint
	ZINT=$(abspath $(BARCODE_TOOLS))/zint go test -run '^$$' -bench '^BenchmarkLibzint$$' -benchtime 1x ./$(BARCODE)
	go test -run '^$$' -bench '^BenchmarkBarcode$$' ./test/acceptance
