#!/bin/sh
# Fetches the archive of Chrome for Testing's chrome-headless-shell: fetch.sh VERSION FILE. The file gets the archive's own time.
# BROWSER_HOST names another server with the same paths.
set -eu
host=${BROWSER_HOST:-https://storage.googleapis.com/chrome-for-testing-public}
curl --fail --silent --show-error --location --retry 3 --remote-time --output "$2" \
	"$host/$1/linux64/chrome-headless-shell-linux64.zip"
