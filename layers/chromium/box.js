// Writes a TrueType font to the path of the first argument. The font shows the same box for every character that any
// font may lack, so that no text vanishes. functions/pdf/render/browser looks for the font's name in each PDF.
'use strict'
const fs = require('fs')

const family = 'SVC Missing Glyph'
const postScript = 'SVCMissingGlyph'
const near = 4096, far = 1024 // equal boxes after .notdef, for the characters of the first two planes and for the others
const glyphs = near + far
const unitsPerEm = 1000, advance = 600, left = 60, right = 540, top = 700, stroke = 50

// Characters that draw nothing have no box.
const invisible = /[\p{Default_Ignorable_Code_Point}\p{White_Space}\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}\uFFF9-\uFFFB]/u

const u16 = (...values) => Buffer.concat(values.map((v) => { const b = Buffer.alloc(2); b.writeUInt16BE(v & 0xffff); return b }))
const u32 = (...values) => Buffer.concat(values.map((v) => { const b = Buffer.alloc(4); b.writeUInt32BE(v >>> 0); return b }))

// glyphOf returns the box of a character. A PDF contains, for each box that it shows, all characters of that box: so many
// boxes keep it small.
const glyphOf = (c) => (c < 0x20000 ? 1 + c % near : 1 + near + c % far)

// ranges returns the first and last code point of each run of characters with successive boxes.
function ranges() {
  const all = []
  for (let c = 0; c <= 0x10ffff; c++) {
    if (invisible.test(String.fromCodePoint(c))) continue
    const last = all[all.length - 1]
    if (last && last[1] === c - 1 && glyphOf(c) === glyphOf(c - 1) + 1) last[1] = c
    else all.push([c, c])
  }
  return all
}

// cmap maps each range to its glyphs (OpenType, cmap format 12). Chromium does not read format 13, which maps
// many characters to one glyph.
function cmap() {
  const groups = ranges().map(([first, last]) => u32(first, last, glyphOf(first)))
  const table = Buffer.concat([u16(12, 0), u32(16 + 12 * groups.length, 0, groups.length), ...groups])
  return Buffer.concat([u16(0, 1), u16(3, 10), u32(12), table])
}

// box returns the glyph: an outer contour clockwise and an inner one counter-clockwise, with all points on the curve.
function box() {
  const points = [
    [left, 0], [left, top], [right, top], [right, 0],
    [left + stroke, stroke], [right - stroke, stroke], [right - stroke, top - stroke], [left + stroke, top - stroke],
  ]
  const deltas = (axis) => points.map((point, i) => point[axis] - (i ? points[i - 1][axis] : 0))
  const outline = [u16(2, left, 0, right, top, 3, 7, 0), Buffer.alloc(points.length, 1), u16(...deltas(0)), u16(...deltas(1))]
  return Buffer.concat(outline)
}

function name() {
  const version = 'Version 1.0'
  const texts = [[1, family], [2, 'Regular'], [3, `${postScript} ${version}`], [4, family], [5, version], [6, postScript]]
  let offset = 0
  const records = [], strings = []
  for (const [id, text] of texts) {
    const utf16 = Buffer.from(text, 'utf16le').swap16()
    records.push(u16(3, 1, 0x409, id, utf16.length, offset))
    strings.push(utf16)
    offset += utf16.length
  }
  return Buffer.concat([u16(0, texts.length, 6 + 12 * texts.length), ...records, ...strings])
}

const padded = (b) => Buffer.concat([b, Buffer.alloc(-b.length & 3)])
const glyph = padded(box())
const each = (value) => Array.from({ length: 1 + glyphs }, value)
const tables = {
  'OS/2': Buffer.concat([
    u16(4, advance, 400, 5, 0, 650, 600, 0, 75, 650, 600, 0, 350, 50, 300, 0), Buffer.alloc(10), u32(0, 0, 0, 0), Buffer.from('NONE'),
    u16(0x40, 0x21, 0xffff, 800, -200, 90, 1000, 250), u32(0, 0), u16(500, top, 0, 0x20, 1),
  ]),
  cmap: cmap(),
  glyf: Buffer.concat(each(() => glyph)),
  head: Buffer.concat([
    u32(0x10000, 0x10000, 0, 0x5f0f3cf5), u16(3, unitsPerEm), Buffer.alloc(16), u16(left, 0, right, top, 0, 8, 2, 1, 0),
  ]),
  hhea: Buffer.concat([u32(0x10000), u16(1000, -250, 0, advance, left, advance - right, right, 1, 0, 0), Buffer.alloc(10), u16(1)]),
  hmtx: u16(advance, ...each(() => left)),
  loca: u32(0, ...each((_, i) => (i + 1) * glyph.length)),
  maxp: Buffer.concat([u32(0x10000), u16(1 + glyphs, 8, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)]),
  name: name(),
  post: Buffer.concat([u32(0x30000, 0), u16(-100, 50), u32(0, 0, 0, 0, 0)]),
}

function checksum(table) {
  const bytes = padded(table)
  let sum = 0
  for (let i = 0; i < bytes.length; i += 4) sum = (sum + bytes.readUInt32BE(i)) >>> 0
  return sum
}

const tags = Object.keys(tables).sort()
let offset = 12 + 16 * tags.length
const directory = [u32(0x10000), u16(tags.length, 128, 3, 16 * tags.length - 128)]
for (const tag of tags) {
  directory.push(Buffer.from(tag), u32(checksum(tables[tag]), offset, tables[tag].length))
  offset += padded(tables[tag]).length
}
const font = Buffer.concat([...directory, ...tags.map((tag) => padded(tables[tag]))])
const head = font.length - tags.slice(tags.indexOf('head')).reduce((sum, tag) => sum + padded(tables[tag]).length, 0)
font.writeUInt32BE((0xb1b0afba - checksum(font)) >>> 0, head + 8)
fs.writeFileSync(process.argv[2], font)
