"""Sends the mistakes of TestMistakes (JSON on standard input) with urllib, and compares each response with the expected one."""

import json
import sys
import urllib.error
import urllib.request

for case in json.load(sys.stdin):
    request = urllib.request.Request(case["url"], case["body"].encode() or None, case["header"], method=case["method"])
    try:
        response = urllib.request.urlopen(request)
    except urllib.error.HTTPError as refused:
        response = refused
    content = response.read()
    error = json.loads(content)["error"] if response.status >= 400 else None
    if (response.status, error, response.headers.get("X-SVC-Warnings", "")) != (case["status"], case["error"], case["warnings"]):
        sys.exit(f"{case['name']}: {response.status} {error} {response.headers}")
