#!/usr/bin/env python3
"""Print every pin of the project with its age, as a table of Markdown.

Usage: pins.py. The pins are the direct modules of every go.mod, the packages of every package.json, the packages that the first
lines of a list of pip name (the others come with them), the artifacts of Maven and the actions of the workflows. Age and newest
release come from each registry's ordinary client. tools/held-pins.json has a reason and an end for each pin that is held back, and the
date where the client names none (Maven). Exit code 1: a newer release is out for more than MOST_DAYS and the pin is not held, a
hold has ended or holds nothing, or a client got no answer.
"""

import datetime
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TODAY = datetime.datetime.now(datetime.UTC).date() if hasattr(datetime, "UTC") else datetime.date.today()
MOST_DAYS = 60


def run(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, capture_output=True, check=True, text=True, timeout=300).stdout


def files(*patterns):
    return run("git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns).split()


def day(text):
    return datetime.date.fromisoformat(text[:10])


def order(version):
    """Return the numbers of a release for comparisons, and nothing for a release before its time."""
    return [int(n) for n in version.lstrip("v").split(".")] if re.fullmatch(r"v?\d+(\.\d+)*", version) else []


def go(file):
    """Yield name, version, date, newest version and its date of the direct modules."""
    folder = ROOT / Path(file).parent
    mod = json.loads(run("go", "mod", "edit", "-json", cwd=folder))
    here = {m["Old"]["Path"] for m in mod.get("Replace") or []}  # replaced by a folder of this repository
    tools = tuple(tool["Path"] + "/" for tool in mod.get("Tool") or [])
    wanted = (m for m in mod.get("Require") or [] if not m.get("Indirect") or any(tool.startswith(m["Path"] + "/") for tool in tools))
    direct = [m["Path"] for m in wanted if m["Path"] not in here]

    def listed(names):
        text = run("go", "list", "-m", "-json=Path,Version,Time", *names, cwd=folder) if names else ""
        return json.loads("[" + text.replace("}\n{", "},{") + "]")

    # "go list -u" passes over a proxy without an answer; the query "latest" does not.
    for own, newest in zip(listed(direct), listed([f"{name}@latest" for name in direct]), strict=True):
        yield own["Path"], own["Version"], day(own["Time"]), newest["Version"], day(newest["Time"])


def npm(file):
    pinned = json.loads((ROOT / file).read_text(encoding="utf-8"))
    for name, version in (pinned.get("dependencies", {}) | pinned.get("devDependencies", {})).items():
        found = json.loads(run("npm", "view", name, "time", "dist-tags", "--json"))
        newest = found["dist-tags"]["latest"]
        yield name, version, day(found["time"][version]), newest, day(found["time"][newest])


def pip(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)(?:\[.*?\])?==([\w.]+)", text, re.MULTILINE)
    words = re.findall(r"[\w.-]*\w", " ".join(line for line in text.splitlines() if line.startswith("#")).lower())
    named = [pin for pin in pins if pin[0].lower() in words]
    index = run(sys.executable, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)").strip()
    for name, version in named or pins:
        request = urllib.request.Request(f"{index}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            found = json.load(response)
        dates = {}
        for f in found["files"]:
            number = re.search(r"-(\d[\w.]*?)(?:-|\.tar|\.zip)", f["filename"])
            if number and not f.get("yanked"):
                dates[number[1]] = day(f["upload-time"])
        newest = max((v for v in dates if order(v)), key=order)
        yield name, version, dates[version], newest, dates[newest]


def maven(file):
    """Yield the artifacts with the date of tools/held-pins.json: Maven's client names none."""
    text = (ROOT / file).read_text(encoding="utf-8")
    plain = re.findall(r"-Dartifact=([\w.]+:[\w-]+):([\d.]+)", text)
    for group, artifact, version in re.findall(r"<groupId>(.*?)</groupId>\s*<artifactId>(.*?)</artifactId>\s*<version>(.*?)</version>", text):
        if group != "local":  # the project itself
            plain.append((f"{group}:{artifact}", version))
    for name, version in plain:
        date = day(HELD[name]["released"]) if "released" in HELD[name] else None
        yield name, version, date, version, date


def actions(file):
    for name, commit, version in set(re.findall(r"uses: ([\w-]+/[\w-]+)@([0-9a-f]{40}) # (v[\d.]+)", (ROOT / file).read_text(encoding="utf-8"))):
        url = f"https://github.com/{name}"
        tags = dict(reversed(line.split("\trefs/tags/")) for line in run("git", "ls-remote", "--tags", url).splitlines())
        if commit not in (tags.get(version), tags.get(version + "^{}")):
            raise ValueError(f"{commit} is not {version}")
        with tempfile.TemporaryDirectory() as folder:
            run("git", "init", "-q", cwd=folder)
            run("git", "fetch", "-q", "--depth=1", "--filter=tree:0", url, commit, cwd=folder)
            date = day(run("git", "log", "-1", "--format=%cs", commit, cwd=folder))
        newest = max((tag for tag in tags if order(tag)), key=order)
        yield name, version, date, newest, date


HELD = {held["name"]: held for held in json.loads((ROOT / "tools/held-pins.json").read_text(encoding="utf-8"))}
SOURCES = {
    go: ["go.mod", "*/go.mod"],
    npm: ["*package.json", ":!tools/clients"],
    pip: ["*requirements.txt", "tools/*.txt"],
    maven: ["Makefile", "functions/pdf/pdf.mk", "local/engine/pom.xml"],
    actions: [".github/workflows/*.yml"],
}


def rows(source, file):
    try:
        return sorted((name, file, *rest) for name, *rest in source(file))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return f"{file}: {source.__name__} got no answer: {detail[-1] if detail else error}"


def main():
    work = [(source, file) for source, patterns in SOURCES.items() for file in files(*patterns)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: rows(*pair), work))
    wrong, seen = [answer for answer in found if isinstance(answer, str)], set()
    print("| Pin | In | Version | Days old | Newest | Held back |\n|---|---|---|---|---|---|")
    for name, file, version, date, newest, out in [row for answer in found if not isinstance(answer, str) for row in answer]:
        held = HELD.get(name)
        seen.add(name)
        age = (TODAY - date).days if date else "not known"
        print(f"| {name} | {file} | {version} | {age} | {newest} | {held['reason'] + ' Until ' + held['until'] if held else ''} |")
        if not held and newest != version and (TODAY - out).days > MOST_DAYS:
            wrong.append(f"{file}: {name} is {version}, {newest} is out for more than {MOST_DAYS} days")
    # A client without an answer hides the pins of its file.
    wrong += [f"tools/held-pins.json: {name} is no pin" for name in HELD if name not in seen and not wrong]
    wrong += [f"tools/held-pins.json: the hold of {name} ended" for name, held in HELD.items() if day(held["until"]) < TODAY]
    if wrong:
        print("", *wrong, sep="\n")
        sys.exit(1)


main()
