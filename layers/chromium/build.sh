#!/bin/sh
# Unpacks the browser, its libraries and the fonts into $1/chromium, which Lambda mounts as /opt/chromium.
# Everything is unpacked here, so that a cold start decompresses nothing.
# What is fetched is fixed by package-lock.json; no install script runs.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
artifacts=$(cd "$1" && pwd)
out="$artifacts/chromium"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Lambda takes 250 MiB unpacked, of function and layers together; the function keeps 15 MiB for itself.
limit=$(((250 - 15) * 1024 * 1024))

cp "$here/package.json" "$here/package-lock.json" "$work/"
(cd "$work" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
modules="$work/node_modules"
packed="$modules/@sparticuz/chromium/bin"

# Each archive becomes a file first: a brotli stream piped into tar breaks now and then.
unbrotli() {
	node -e 'const fs = require("fs"), zlib = require("zlib")
fs.writeFileSync(process.argv[2], zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])))' "$1" "$2"
}

rm -rf "$out"
mkdir -p "$out/fonts" "$out/licenses"
unbrotli "$packed/chromium.br" "$out/headless_shell"
chmod 755 "$out/headless_shell"
unbrotli "$packed/al2023.tar.br" "$work/al2023.tar"
tar -xf "$work/al2023.tar" -C "$out" --no-same-owner
unbrotli "$packed/fonts.tar.br" "$work/fonts.tar"
tar -xf "$work/fonts.tar" -C "$work" --no-same-owner
cp "$work"/fonts/Open_Sans/*.ttf "$out/fonts/"
# Each style that exists; of the large fonts Regular alone, because their other styles exceed the limit below.
for font in arimo tinos cousine noto-sans noto-sans-sinhala noto-sans-tamil noto-sans-devanagari noto-sans-arabic noto-sans-thai \
	noto-sans-symbols noto-sans-symbols-2 noto-sans-math noto-emoji noto-sans-sc noto-sans-jp noto-sans-kr; do
	package="$modules/@expo-google-fonts/$font"
	case $font in
	noto-sans | noto-emoji | noto-sans-sc | noto-sans-jp | noto-sans-kr) styles=400Regular ;;
	*) styles="400Regular 700Bold 400Regular_Italic 700Bold_Italic" ;;
	esac
	for style in $styles; do
		if [ -d "$package/$style" ]; then
			cp "$package/$style"/*.ttf "$out/fonts/"
		fi
	done
	cp "$package/LICENSE_FONT" "$out/licenses/$font.txt"
done
node "$here/box.js" "$out/fonts/MissingGlyph.ttf"
cp "$modules/@sparticuz/chromium/LICENSE" "$out/licenses/sparticuz-chromium.txt"
cp "$here/fonts.conf" "$out/"
chmod -R u=rwX,go=rX "$out"

size=$(find "$out" -type f -exec wc -c {} + | awk '$2 != "total" { sum += $1 } END { printf "%d", sum }')
awk -v size="$size" -v limit="$limit" 'BEGIN {
	printf "layer: %.1f MiB unpacked, %.1f MiB allowed\n", size / 1048576, limit / 1048576
}'
if [ "$size" -gt "$limit" ]; then
	echo "layer: too large" >&2
	exit 1
fi
