#!/bin/sh
# Unpacks the browser, its libraries and the fonts into $1/chromium, which Lambda mounts as /opt/chromium.
# Everything is unpacked here, so that a cold start decompresses nothing.
# What is fetched is fixed by package-lock.json and browser.json; no install script runs.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
artifacts=$(cd "$1" && pwd)
out="$artifacts/chromium"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp "$here/package.json" "$here/package-lock.json" "$work/"
(cd "$work" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
modules="$work/node_modules"
packed="$modules/@sparticuz/chromium/bin"

# Each archive becomes a file first: a brotli stream piped into tar breaks now and then.
unbrotli() {
	node -e 'const fs = require("fs"), zlib = require("zlib")
fs.writeFileSync(process.argv[2], zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])))' "$1" "$2"
}

# browser.json names the source, the version, the sum of the packed browser, and the release's date, which the renderer reports.
field() { sed -n "s/^ *\"$1\": \"\(.*\)\".*/\1/p" "$here/browser.json"; }
verify() { printf '%s  %s\n' "$(field sha256)" "$1" | sha256sum --check --strict --quiet; }

rm -rf "$out"
mkdir -p "$out/fonts" "$out/licenses"
case $(field source) in
npm)
	verify "$packed/chromium.br"
	unbrotli "$packed/chromium.br" "$out/headless_shell"
	cp "$modules/@sparticuz/chromium/LICENSE" "$out/licenses/sparticuz-chromium.txt"
	;;
chrome-for-testing)
	"$here/fetch.sh" "$(field version)" "$work/browser.zip"
	verify "$work/browser.zip"
	unzip -q "$work/browser.zip" -d "$work"
	archive="$work/chrome-headless-shell-linux64"
	cp "$archive/chrome-headless-shell" "$out/headless_shell"
	# A PDF needs neither the translations nor the programs of graphics (libGLESv2, SwiftShader, Vulkan).
	cp "$archive"/headless_*.pak "$archive/icudtl.dat" "$archive/v8_context_snapshot.bin" "$out/"
	cp "$archive"/LICENSE* "$out/licenses/"
	;;
*)
	echo "layer: browser.json names no known source" >&2
	exit 1
	;;
esac
chmod 755 "$out/headless_shell"
unbrotli "$packed/al2023.tar.br" "$work/al2023.tar"
tar -xf "$work/al2023.tar" -C "$out" --no-same-owner

# Lambda's system has glibc and libgcc_s. Other libraries that the browser names come from this machine, which has to be one
# with Lambda's glibc or an older one. LAYER_LIBRARIES is a folder with more of them. LAYER_FOR=here builds a layer for this
# machine only: glibc and size are not checked.
LD_LIBRARY_PATH="$out/lib:${LAYER_LIBRARIES:-}" ldd "$out/headless_shell" 2> "$work/ldd" | while read -r name _ path _; do
	case $name:$path in
	*:not) echo "layer: this machine lacks $name, which the browser needs" >&2; exit 1 ;;
	lib[cm].so.6:* | libdl.so.2:* | libpthread.so.0:* | librt.so.1:* | libresolv.so.2:* | libgcc_s.so.1:* | *:"$out"/*) ;;
	*:/*) cp -L "$path" "$out/lib/$name" ;;
	esac
done
newer=$(cd "$out" && grep -aoE 'GLIBC_2\.[0-9]+' headless_shell lib/*.so* | sort -Vu | awk -F '[:.]' '$NF > 34 { print "  " $0 }')
if [ -n "$newer" ] && [ "${LAYER_FOR:-}" != here ]; then
	printf 'layer: Lambda has glibc 2.34. Build on Amazon Linux 2023, or take another browser:\n%s\n' "$newer" >&2
	exit 1
fi

grep -v '^#' "$here/fonts.txt" | while read -r font styles; do
	package="$modules/@expo-google-fonts/$font"
	for style in $styles; do
		cp "$package/$style"/*.ttf "$out/fonts/"
		echo "$font $(cat "$package/$style"/*.ttf | wc -c)" >> "$work/sizes"
	done
	cp "$package/LICENSE_FONT" "$out/licenses/$font.txt"
done
MAKEFLAGS= make --silent -C "$here/../.." "${FONTS:-patch-fonts}" FOLDER="$out/fonts" >&2
node "$here/box.js" "$out/fonts/MissingGlyph.ttf"
cp "$here/fonts.conf" "$here/browser.json" "$out/"
grep -qaF "$(field version)" "$out/headless_shell" || { echo "layer: the browser is not $(field version)" >&2; exit 1; }

# A start of the browser writes the cache of its fonts. The pipe of its commands is at its end, so that it ends, too. The
# cache names the folder of the fonts with its time. Neither matters (browser/process.go), and the same source gives the
# same bytes: the folder has a link with a name of fixed length, and both are overwritten.
start=$(mktemp -d /tmp/layer.XXXXXX)
trap 'rm -rf "$work" "$start"' EXIT
cp "$here/fonts.conf" "$start/"
ln -s "$out/fonts" "$start/fonts"
FONTCONFIG_FILE="$start/fonts.conf" LD_LIBRARY_PATH="$out/lib" HOME="$start" XDG_CACHE_HOME="$start" "$out/headless_shell" \
	--headless --no-sandbox --no-zygote --disable-gpu --user-data-dir="$start/profile" --remote-debugging-pipe \
	3< /dev/null 4> /dev/null > "$work/start" 2>&1 || true
mkdir "$out/fontconfig"
node -e 'const fs = require("fs"), [start, out] = process.argv.slice(1)
const [name] = fs.readdirSync(start + "/fontconfig").filter((file) => file.includes(".cache-"))
const cache = Buffer.from(fs.readFileSync(start + "/fontconfig/" + name, "latin1").replaceAll(start, "/tmp/layer.000000"), "latin1")
fs.writeFileSync(out + "/fontconfig/" + name, cache.fill(0, 48, 64))' "$start" "$out" 2> "$work/cache" ||
	echo "layer: the browser does not run here (x86-64 Linux only): it starts more slowly without the cache of its fonts" >&2
chmod -R u=rwX,go=rX "$out"

# Lambda takes 250 MiB unpacked, of function and layers together ("Lambda quotas"). The function may grow by 1 MiB.
mkdir "$work/function"
MAKEFLAGS= make --silent -C "$here/../.." build-PdfRenderFunction ARTIFACTS_DIR="$work/function" >&2
limit=$((250 * 1024 * 1024 - $(wc -c < "$work/function/bootstrap") - 1024 * 1024))
size=$(find "$out" -type f -exec wc -c {} + | awk '$2 != "total" { sum += $1 } END { printf "%d", sum }')
awk -v size="$size" -v limit="$limit" 'BEGIN {
	printf "layer: %.1f MiB unpacked, %.1f MiB allowed\n", size / 1048576, limit / 1048576
}'
if [ "$size" -gt "$limit" ] && [ "${LAYER_FOR:-}" != here ]; then
	echo "layer: too large. Remove these fonts from the end of layers/chromium/fonts.txt:" >&2
	awk -v over=$((size - limit)) '$1 != font[n] { font[++n] = $1 } { bytes[n] += $2 }
		END {
			for (; n > 0 && over > 0; over -= bytes[n--]) printf "  %s (%.1f MiB)\n", font[n], bytes[n] / 1048576
			if (over > 0) print "That is not enough."
		}' "$work/sizes" >&2
	exit 1
fi
