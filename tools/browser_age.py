#!/usr/bin/env python3
"""Measures the age of the layer's browser against Chrome's stable channel, from two sources of which one suffices.

Usage: browser_age.py BINARY [HISTORY_URL APT_CACHE LISTS]

The version is the string in BINARY. The first source is Chrome's version history (developer.chrome.com, "VersionHistory
API guide"), which dates each release. The second is the package chromium of the distribution, as apt-cache names it where
its LISTS are younger than two days. The package has the newest version only: a newer major version counts as too old
there. Exit code 1: a newer stable release is older than 14 days, or no source answered.
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

MOST_DAYS = 14
HISTORY = ("https://versionhistory.googleapis.com/v1/chrome/platforms/linux/channels/stable/versions/all/releases"
           "?pageSize=200&order_by=version%20desc")
LISTS = "/var/lib/apt/lists"
OLDEST_LISTS = 2 * 24 * 3600  # seconds


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def own_version(path):
    found = set()
    with open(path, "rb") as file:
        rest = b""
        while block := file.read(1 << 24):
            found.update(re.findall(rb"(?<![\d.])\d{3}\.0\.\d{4,5}\.\d{1,3}(?![\d.])", rest + block))
            rest = block[-64:]
    if len(found) != 1:
        sys.exit(f"{path} has {len(found)} version strings, want 1")
    return found.pop().decode()


def history(url, own):
    """Returns the newest stable version, and the days since the first release that is newer than own."""
    releases = json.loads(fetch(url))["releases"]
    newest = max((r["version"] for r in releases), key=numbers)
    now = datetime.datetime.now(datetime.timezone.utc)
    days = [(now - datetime.datetime.fromisoformat(r["serving"]["startTime"].replace("Z", "+00:00"))).days
            for r in releases if numbers(r["version"]) > numbers(own)]
    return newest, max(days, default=0)


def package(program, own, lists):
    """Returns the newest version, and more days than are permitted where its major version is newer than own."""
    if time.time() - max(file.stat().st_mtime for file in pathlib.Path(lists).iterdir()) > OLDEST_LISTS:
        raise ValueError("the lists of packages are old: apt-get update")
    text = subprocess.run([program, "policy", "chromium"], capture_output=True, check=True, text=True).stdout
    found = re.search(r"(?m)^ *Candidate: (\d+\.\d+\.\d+\.\d+)-", text)
    if not found:
        raise ValueError("the distribution has no package chromium")
    newest = found[1]
    return newest, MOST_DAYS + 1 if numbers(newest)[0] > numbers(own)[0] else 0


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read()


def main():
    own = own_version(sys.argv[1])
    url, program, lists = sys.argv[2:] or [HISTORY, "apt-cache", LISTS]
    answers = []
    for name, source in {url: lambda: history(url, own), program: lambda: package(program, own, lists)}.items():
        try:
            answers.append(source())
        except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
    if not answers:
        sys.exit(f"no source answered: the age of the browser {own} is not known")
    for newest, days in answers:
        if days > MOST_DAYS:
            sys.exit(f"the browser is {own}, Chrome's stable is {newest}, and a newer one is out for more than {MOST_DAYS} "
                     "days: docs/supply-chain.md, Renew the browser")
    print(f"the browser is {own}, Chrome's stable is {answers[0][0]}")


main()
