#!/bin/sh
# Rehearses "make browser" in a clone: the archive comes from a server of this machine, which packs the newest
# chromium-headless-shell of Debian in the layout of Chrome for Testing's archive. That build needs a newer glibc than Lambda's,
# and libraries of Debian: the layer is for this machine only. BROWSER_TESTS names the targets to run, test-hostile by default.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

mkdir "$work/debs" && cd "$work/debs"
apt-get update -qq
# Its libraries, as apt-get would install them, without the programs.
apt-get -o APT::Sandbox::User=root download -qq chromium-headless-shell chromium-common \
	$(apt-get install --no-install-recommends -s chromium-headless-shell | awk '/^Inst lib/ { print $2 }')
version=$(dpkg-deb --field chromium-headless-shell_*.deb Version | cut -d - -f 1)
for deb in *.deb; do dpkg-deb --extract "$deb" "$work/system"; done
mkdir "$work/libraries"
find "$work/system/usr/lib/x86_64-linux-gnu" "$work/system/lib" -name '*.so*' -exec cp -P {} "$work/libraries/" \; 2> /dev/null || true

packed="$work/server/$version/linux64/chrome-headless-shell-linux64"
mkdir -p "$packed/locales"
cd "$work/system/usr/lib/chromium"
cp chromium-headless-shell "$packed/chrome-headless-shell"
cp headless_*.pak icudtl.dat v8_context_snapshot.bin libEGL.so libGLESv2.so libvk_swiftshader.so libvulkan.so.1 vk_swiftshader_icd.json "$packed/"
cp locales/*.pak "$packed/locales/"
cp "$work/system/usr/share/doc/chromium-headless-shell/copyright" "$packed/LICENSE.headless_shell"
(cd "$packed/.." && python3 -m zipfile -c chrome-headless-shell-linux64.zip chrome-headless-shell-linux64)
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/server" 0 > "$work/log" 2>&1 &
server=$!
until port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/log") && [ -n "$port" ]; do sleep 0.1; done

git clone --quiet --shared "$root" "$work/clone"
BROWSER_HOST="http://127.0.0.1:$port" LAYER_LIBRARIES="$work/libraries" LAYER_FOR=here \
	make -C "$work/clone" --no-print-directory browser VERSION="$version" BROWSER_TESTS="${BROWSER_TESTS-test-hostile}"
