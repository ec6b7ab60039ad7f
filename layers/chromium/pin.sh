#!/bin/sh
# Writes browser.json for another browser, and fetches it once: pin.sh VERSION (make browser).
# Three numbers are a version of the npm package, four are one of Chrome for Testing's chrome-headless-shell.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $1 in
*.*.*.*)
	source=chrome-for-testing version=$1
	./fetch.sh "$version" "$work/browser"
	released=$(date -u -r "$work/browser" +%F) # curl sets the server's Last-Modified
	;;
*.*.*)
	source=npm
	npm install --save-exact --ignore-scripts --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund "@sparticuz/chromium@$1"
	(cd "$work" && npm pack --silent "@sparticuz/chromium@$1" && tar -xzf ./*.tgz && mv package/bin/chromium.br browser) > /dev/null
	version=$(node -e 'const fs = require("fs"), text = require("zlib").brotliDecompressSync(fs.readFileSync(process.argv[1]))
const found = new Set(text.toString("latin1").match(/(?<![\d.])\d{3}\.0\.\d{4,5}\.\d{1,3}(?![\d.])/g))
if (found.size !== 1) throw new Error(`${found.size} version strings, want 1`)
console.log([...found][0])' "$work/browser")
	released=$(npm view "@sparticuz/chromium@$1" time --json | sed -n "s/^ *\"$1\": \"\(..........\).*/\1/p")
	;;
*)
	echo "VERSION is 153.0.0 for the npm package or 156.0.8078.79 for Chrome for Testing, not $1" >&2
	exit 2
	;;
esac
printf '{\n  "source": "%s",\n  "version": "%s",\n  "released": "%s",\n  "sha256": "%s"\n}\n' \
	"$source" "$version" "$released" "$(sha256sum < "$work/browser" | cut -d ' ' -f 1)" > browser.json
cat browser.json
