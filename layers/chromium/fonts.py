"""Prepares the fonts in the folder of the first argument for the browser, and writes fonts.zst, by which the build of
the layer does the same without Python (tools/fonts), and fonts.sum with what has to result.

Where a font lacks a character, Chromium looks in its standard font, which is Tinos, and then takes a regular font
whatever the weight and draws the bold as outlines of its own, which a PDF holds as Type 3. So the bold fonts of Tinos
receive the bold glyphs of the other scripts; in the italic one these are slanted as Chromium slants the regular ones.
A symbol has one weight: its font counts as bold, and Chromium draws nothing over it. Hints are removed, as the browser
uses none.

The SIL Open Font License 1.1 of these fonts reserves no name. The fonts that have a reserved one (Chinese, Japanese and
Korean, 'Source') are not changed.
"""
import copy
import glob
import hashlib
import io
import pathlib
import sys

import zstandard
from fontTools import merge, subset
from fontTools.ttLib import TTFont
from fontTools.ttLib.scaleUpem import scale_upem
from fontTools.ttLib.tables import otBase, otTables

FOLDER = sys.argv[1]
LAYER = pathlib.Path(__file__).parent
STANDARD = "Tinos_700Bold"
ONE_WEIGHT = ("NotoSans", "NotoSansSymbols", "NotoSansSymbols2", "NotoSansMath", "NotoEmoji")
UNCHANGED = ("NotoSansSC", "NotoSansJP", "NotoSansKR")
HINTS = ("cvt ", "fpgm", "prep", "gasp", "hdmx", "LTSH", "VDMX")
UNITS = 2048  # of an em in Tinos
SLANT = 0.25  # of Chromium
JOINERS = {0x200C: "uni200C", 0x200D: "uni200D"}
OF_SCRIPTS = {*JOINERS, 0x25CC}  # characters that the rules of each script contain


def opened(file):
    return TTFont(file, recalcTimestamp=False)  # the same source gives the same bytes


def keep(font, characters):
    """Removes all glyphs but those of the characters, and the hints."""
    options = subset.Options(hinting=False, layout_features=["*"], name_IDs=["*"], notdef_outline=True)
    options.glyph_names = True  # merged compares them
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    return font


def merged(fonts):
    files = []
    for font in fonts:
        files.append(io.BytesIO())
        font.save(files[-1])
    result = merge.Merger(merge.Options(drop_tables=["STAT"])).merge(files)
    # Each script's rules have a glyph of their own for a joiner; the text has the one of the character map.
    shown, names = result.getBestCmap(), {}
    for name in result.getGlyphOrder():
        for joiner, prefix in JOINERS.items():
            if joiner in shown and name.split(".")[0] == prefix:
                names[name] = shown[joiner]
    return rename(result, names)


def parts(table):
    """Yields a table of rules and all tables below it."""
    yield table
    table.ensureDecompiled()
    for value in vars(table).values():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, otBase.BaseTable):
                yield from parts(item)


def rename(font, names):
    def renamed(value):
        if isinstance(value, (list, tuple)):
            return [renamed(item) for item in value]
        if isinstance(value, dict):
            return {renamed(key): renamed(item) for key, item in value.items()}
        if isinstance(value, otTables.Ligature):
            value.Component, value.LigGlyph = renamed(value.Component), renamed(value.LigGlyph)
        return names.get(value, value) if isinstance(value, str) else value

    for part in parts(font["GSUB"].table):
        for key, value in vars(part).items():
            setattr(part, key, renamed(value))
    return font


def slanted(font):
    glyphs = font["glyf"]
    for name in font.getGlyphOrder():
        glyph = glyphs[name]
        if glyph.isComposite():
            for component in glyph.components:
                assert not hasattr(component, "transform") and hasattr(component, "x"), name
                component.x += round(SLANT * component.y)
        elif glyph.numberOfContours:
            glyph.coordinates.transform(((1, 0), (SLANT, 1)))
            glyph.coordinates.toInt()
    for name in font.getGlyphOrder():
        glyphs[name].recalcBounds(glyphs)
        font["hmtx"][name] = (font["hmtx"][name][0], getattr(glyphs[name], "xMin", 0))
    for part in parts(font["GPOS"].table):
        if isinstance(part, otTables.Anchor):
            part.XCoordinate += round(SLANT * part.YCoordinate)
    return font


def scripts():
    """Returns a font with the bold glyphs of all scripts, in the order of fonts.txt, or None without any."""
    fonts, have = [], set()
    for line in (LAYER / "fonts.txt").read_text().splitlines():
        if not line.startswith("noto-sans-") or "700Bold" not in line:
            continue
        font = opened(f"{FOLDER}/{line.split()[0].title().replace('-', '')}_700Bold.ttf")
        characters = set(font.getBestCmap()) - have
        have |= characters - OF_SCRIPTS
        scale_upem(keep(font, characters), UNITS)
        fonts.append(font)
    return merged(fonts) if fonts else None


def complete(path, script):
    """Adds the glyphs of the scripts to a font, which keeps its names and metrics."""
    font, original = opened(path), opened(path)
    have = set(font.getBestCmap()) - OF_SCRIPTS
    result = merged([keep(font, have), keep(copy.deepcopy(script), set(script.getBestCmap()) - have)])
    result.recalcTimestamp = False
    result["name"], result["OS/2"] = original["name"], original["OS/2"]
    for tag, keys in {"hhea": ("ascent", "descent", "lineGap"), "head": ("macStyle", "created", "modified")}.items():
        for key in keys:
            setattr(result[tag], key, getattr(original[tag], key))
    result["post"].italicAngle = original["post"].italicAngle
    save(result, path)


def save(font, path):
    font["post"].formatType = 3.0  # without the names of glyphs
    font.save(path)


def contents(names):
    return [pathlib.Path(FOLDER, name).read_bytes() for name in names]


changed = sorted(path.name for path in pathlib.Path(FOLDER).glob("*_*.ttf") if path.name.split("_")[0] not in UNCHANGED)
sources = b"".join(contents(changed))
for path in sorted(glob.glob(f"{FOLDER}/*_*.ttf")):
    name = path.rsplit("/", 1)[1]
    family = name.split("_", 1)[0]
    if family in UNCHANGED or name.startswith(STANDARD):
        continue
    font = opened(path)
    for tag in HINTS:
        if tag in font:
            del font[tag]
    font["glyf"].removeHinting()
    if family == "NotoSansMath":  # the font of Arabic has better letters
        for table in font["cmap"].tables:
            table.cmap = {code: glyph for code, glyph in table.cmap.items() if not 0x600 <= code < 0x700}
    if family in ONE_WEIGHT:
        font["OS/2"].usWeightClass, font["OS/2"].fsSelection = 700, font["OS/2"].fsSelection & ~0x40 | 0x20
        font["head"].macStyle |= 1
    save(font, path)
upright = scripts()
if upright:
    italic = slanted(copy.deepcopy(upright))
    complete(f"{FOLDER}/{STANDARD}.ttf", upright)
    complete(f"{FOLDER}/{STANDARD}_Italic.ttf", italic)
results = contents(changed)
parameters = zstandard.ZstdCompressionParameters.from_level(
    22, window_log=(len(sources) + sum(map(len, results))).bit_length(), enable_ldm=True, write_checksum=True)
patch = zstandard.ZstdCompressor(
    dict_data=zstandard.ZstdCompressionDict(sources, dict_type=zstandard.DICT_TYPE_RAWCONTENT),
    compression_params=parameters).compress(b"".join(results))
(LAYER / "fonts.zst").write_bytes(patch)
(LAYER / "fonts.sum").write_text("".join(
    f"{hashlib.sha256(result).hexdigest()} {len(result)} {name}\n" for result, name in zip(results, changed)))
