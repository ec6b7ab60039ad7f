// Writes vectors.jsonl, one golden vector a line, from two encoders that are not this project's: Debian's zint and
// npm's bwip-js. Run it with `make barcode-vectors`; the tests read only what it wrote.
//
//   {"type", "data", "bars", "sources"}                      a linear symbol, its bars as in bars.mjs
//   {"type": "QR", "repeat", "length", "level", "version", "mask", "sha256", "sources"}
//                                                            repeat, over and over, truncated to length; the hash is
//                                                            of the rows of 0 and 1, each with a newline
//
// A vector is written where both draw the same, and named on standard error where they do not: there they follow
// rules of their own (their Code 128 is not always the shortest). This project's own symbols are not used.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { bars, qrRows, version as bwipVersion } from './bars.mjs';

const zintVersion = execFileSync('zint', ['--version'], { encoding: 'utf8' }).trim().replace('Zint version', 'zint');

const zintTypes = {
  C128: 'CODE128', C128A: 'CODE128', C128B: 'CODE128B', C128C: 'CODE128', EAN13: 'EANX', EAN8: 'EANX', UPCA: 'UPCA', UPCE: 'UPCE',
  C39: 'LOGMARS', 'C39+': 'LOGMARS', I25: 'C25INTER', ITF14: 'ITF14', MSI: 'MSI_PLESSEY', POSTNET: 'POSTNET', GS1128: 'GS1_128',
};

function zintRows(args, data) {
  const escaped = data.replace(/\\/g, '\\\\').replace(/[\x00-\x1f\x7f]/g, (c) => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase());
  const dump = execFileSync('zint', [...args, '--esc', '-d', escaped, '--dump', '--noquietzones', '--notext'], { encoding: 'utf8', stdio: 'pipe' });
  return dump.trim().split('\n').map((row) => [...row.replaceAll(' ', '')].map((hex) => parseInt(hex, 16).toString(2).padStart(4, '0')).join(''));
}

function zintBars(type, data) {
  if (type.startsWith('DATAMATRIX')) {
    const args = ['-b', 'DATAMATRIX', type.includes('rectangle') ? '--dmre' : '--square'];
    if (type.includes('gs1')) args.push('--gs1', '--gs1parens');
    const version = type.includes('rectangle') && rectangles[data];
    const rows = zintRows(version ? [...args.filter((a) => a !== '--dmre'), `--vers=${version}`] : args, data);
    const width = bars(type, data).indexOf('/');
    return rows.map((row) => row.slice(0, width)).join('/');
  }
  const args = ['-b', zintTypes[type]];
  if (type === 'C39+') args.push('--vers=1'); // with check character
  if (type === 'GS1128') args.push('--gs1parens');
  const rows = zintRows(args, data).map((row) => row.replace(/0+$/, ''));
  if (type === 'POSTNET') {
    return [...rows.at(-1)].filter((_, i) => i % 2 === 0).map((_, i) => (rows[0][2 * i] === '1' ? 'T' : 'S')).join('');
  }
  return rows[0].match(/1+|0+/g).map((run) => run.length).join('');
}

const linear = {
  C128: ['Hello', 'hello world', 'Wikipedia', 'a', 'Z', '~', 'The quick brown fox', 'lower case only', 'MiXeD cAsE', '12', '1234', '123456', '00000000', '98765432109876', 'ABC', 'AB-CD/EF', 'A\tB\tC', '\x01\x02\x03', 'LINE\r\n', 'abc1234', '123456abc', 'abc123456def', 'x12345678', '{"json":1}', 'https://example.com/', '!"#$%&\'()*+,-./', ':;<=>?@[\\]^_`', '{|}~'],
  C128A: ['ABC\t', 'A\x00B', 'LINE\r\nTWO', '\x1b[0M', 'TAB\tTAB', 'PJ-C\t', '\x1f\x1e\x1d', '_^]\x05', 'STOP!\x03', 'AB-#\x02\x03', 'X\x0b', '(A)\x0c'],
  C128B: ['abc', 'Hello', 'a1b2c3', 'lower', '123a456', '~{|}', 'Code 128 B', 'x 123', 'price: 10.50', 'end', 'under_score', '12ab', 'PJJ123c'],
  C128C: ['00', '12', '99', '1234', '010203', '123456', '00000000', '9876543210', '31415926535897', '20261121', '55555555555555555555', '0123456789'],
  EAN13: ['400638133393', '978030640615', '629104150021', '590123412345', '000000000000', '999999999999', '123456789012', '871125300120', '761234567890', '400399415548', '479000000001', '210987654321'],
  EAN8: ['7351353', '9638507', '0000000', '9999999', '1234567', '7654321', '4012345', '2012345', '5512345', '9031101', '4790001', '8888888'],
  UPCA: ['03600029145', '01234567890', '04210000526', '12345678901', '00000000000', '99999999999', '72527273070', '88909404711', '06510000432', '70617060003', '31234567890', '19014820117'],
  UPCE: ['0123450', '0123451', '0123452', '0123453', '0123454', '0123455', '0123459', '0654321', '0425261', '1123450', '1123453', '1123456', '1654321', '0987650', '1999999', '0111126'],
  C39: ['A', 'ABC', 'CODE39', '0123456789', 'ABCDEFGHIJKLM', 'NOPQRSTUVWXYZ', '-. $/+%', 'A-B', 'WIKIPEDIA', 'X 1', '10.50', '$100%', '+A123BJC5D6E71'],
  'C39+': ['A', 'ABC', 'CODE39', '0123456789', 'ABCDEFGHIJKLM', 'NOPQRSTUVWXYZ', '-. $/+%', 'A-B', 'WIKIPEDIA', 'X 1', '10.50', '$100%', '+A123BJC5D6E71'],
  I25: ['0', '1', '12', '123', '1234', '00', '99', '0123456789', '98765', '31415926', '1234567890123', '00000000000000000001', '3', '7', '8', '17', '28', '36', '45', '54', '67', '71', '82', '93', '456', '678', '890', '2718', '7180', '8807', '17283', '78787'],
  ITF14: ['1540014128876', '0001234560001', '1001234512345', '9999999999999', '0000000000000', '1234567890123', '9876543210987', '0471234567890', '1590123412345', '3040063813339', '2761234567890', '8000000000001'],
  MSI: ['0', '1', '5', '9', '12', '123', '1234', '0000', '9999', '1234567', '80523', '0123456789', '9876543210', '31415926535', '2', '3', '4', '6', '7', '8', '36', '47', '58', '69', '271828', '1618033', '57721566', '24681357', '86420975'],
  POSTNET: ['12345', '00000', '99999', '55555', '90210', '801221905', '555551237', '123456789', '000000000', '999999999', '12345678901', '98765432109', '80122190555', '11111111111', '00009', '00007', '00003', '10001', '24680', '13579', '86421', '75319', '271828182', '314159265', '161803398', '577215664', '27182818284', '31415926535', '16180339887', '57721566490'],
};

// The sizes of rectangles, which zint takes by their number (8 by 18 is 25) and never by itself.
const rectangles = {};
for (const [version, inputs] of Object.entries({
  25: ['123456', 'A1B2', '(90)12'], 26: ['1234567890123456', 'ABC-12', '(01)09506000134352', '(90)123456'],
  27: ['12345678901234567890123456', '(01)09506000134352(17)261231'],
  28: ['1234567890123456789012345678901234567890', '(01)09506000134352(17)261231(10)123456'],
  29: ['12345678901234567890123456789012345678901234567890123456', '(01)09506000134352(11)260101(17)261231(21)1234567890'],
  30: ['12345678901234567890123456789012345678901234567890123456789012345678901234567890', '(00)395060001343000008(02)09506000134352(37)12345678(15)261231(10)123456'],
})) for (const data of inputs) rectangles[data] = version;
const isGS1 = (data) => data.startsWith('(');

Object.assign(linear, {
  GS1128: ['(01)09506000134352', '(00)395060001343000008', '(01)09506000134352(10)ab-123', '(01)09506000134352(17)261231(10)lot42', '(01)09506000134352(21)12345678', '(00)395060001343000008(02)09506000134352(37)24(10)a1', '(01)09506000134352(3103)001250', '(8020)1234567890(415)9506000134307', '(90)hello', '(01)09506000134352(10)123456(21)987654', '(401)9506000abc', '(01)09506000134352(15)261200'],
  DATAMATRIX: ['123456', 'A1B2', '00', '30Q324343430794', '12345678901234567890', '1234567890123456789012345678901234567890', 'a', 'A-1', 'B4/5', '1234567890123456789012345678901234567890123456789012345678901234567890', '99999999', '0101010101'],
  'DATAMATRIX gs1': ['(01)09506000134352', '(00)395060001343000008', '(01)09506000134352(17)261231(10)123456', '(01)09506000134352(17)261231(10)123456(21)1234567890', '(01)09506000134352(3103)001250', '(00)395060001343000008(02)09506000134352(37)24', '(90)12', '(01)09506000134352(10)1', '(01)09506000134352(21)12345678', '(415)9506000134307(8020)1234567890'],
  'DATAMATRIX rectangle': Object.keys(rectangles).filter((data) => !isGS1(data)),
  'DATAMATRIX rectangle gs1': Object.keys(rectangles).filter(isGS1),
});

const lines = [];
const sources = [zintVersion, bwipVersion];

function keep(vector, name, byZint, byBwip) {
  if (byZint === byBwip) {
    lines.push({ ...vector, sources });
  } else {
    console.error('left out, the encoders differ:', name);
  }
}

for (const [type, inputs] of Object.entries(linear)) {
  for (const data of inputs) {
    const drawn = bars(type, data);
    keep({ type, data, bars: drawn }, `${type} ${JSON.stringify(data)}`, zintBars(type, data), drawn);
  }
}

// QR codes of every version and level, in every mode and with every mask, with different amounts of data.
const alphabets = ['abcdefghij klmnopqrs/tuvwxyz.', '0123456789', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:0123456789'];
const repeated = (text, length) => text.repeat(Math.ceil(length / text.length)).slice(0, length);

// How many characters of a text fit is found by trying: zint rejects a text that does not fit.
function capacity(version, secure, text) {
  let fits = 1, tooMany = 7090;
  while (fits + 1 < tooMany) {
    const middle = (fits + tooMany) >> 1;
    try {
      zintRows(['-b', 'QRCODE', `--vers=${version}`, `--secure=${secure}`, '--werror'], repeated(text, middle));
      fits = middle;
    } catch {
      tooMany = middle;
    }
  }
  return fits;
}

for (let version = 1; version <= 40; version++) {
  for (const [number, level] of [...'LMQH'].entries()) {
    const secure = number + 1;
    const mask = (version + 3 * number) % 8;
    const repeat = alphabets[(version + number) % 3];
    const length = Math.ceil(capacity(version, secure, repeat) * (1 - ((version * 7 + number) % 10) / 100));
    const data = repeated(repeat, length);
    const byZint = zintRows(['-b', 'QRCODE', `--vers=${version}`, `--secure=${secure}`, `--mask=${mask}`], data);
    const [zint, bwip] = [byZint.map((row) => row.slice(0, 17 + 4 * version)), qrRows(data, level, version, mask)]
      .map((rows) => createHash('sha256').update(rows.map((row) => row + '\n').join('')).digest('hex'));
    keep({ type: 'QR', repeat, length, level, version, mask, sha256: bwip }, `QR ${version} ${level} ${mask} ${length}`, zint, bwip);
  }
}

writeFileSync(new URL('vectors.jsonl', import.meta.url), lines.map((line) => JSON.stringify(line) + '\n').join(''));
const count = (test) => lines.filter(test).length;
console.error(count((l) => l.type !== 'QR'), 'linear and', count((l) => l.type === 'QR'), 'QR vectors written');
