"""Reads pictures back with zxing-cpp, an independent decoder.

Reads lines of JSON {"png": base64, "format": a name of zxingcpp.BarcodeFormat} and writes for each a line
{"size": [width, height], "mode", "found": [{"bytes": base64, "level"}]}. A picture is shown as it is first, and where
nothing is found, with the white paper around it that its quiet zone would be on.
"""

import base64
import io
import json
import sys

import zxingcpp
from PIL import Image, ImageOps


def read(image, format):
    for shown in (image, ImageOps.expand(image, border=max(20, image.width // 10), fill=255)):
        for pure in (True, False):
            # A low symbol above a high line of text is not pure: the middle row is text, and the result is not valid.
            found = [b for b in zxingcpp.read_barcodes(shown, formats=format, is_pure=pure, try_invert=False) if b.valid]
            if found:
                return found
    return []


for line in sys.stdin:
    request = json.loads(line)
    image = Image.open(io.BytesIO(base64.b64decode(request["png"])))
    image.load()
    found = read(image.convert("L"), getattr(zxingcpp.BarcodeFormat, request["format"]))
    print(json.dumps({
        "size": image.size,
        "mode": image.mode,
        "found": [{"bytes": base64.b64encode(b.bytes).decode(), "level": b.ec_level} for b in found],
    }))
