// The bars that bwip-js draws, as strings: widths of bar, space, bar, ... in modules ("211232"), for POSTNET
// T (tall) and S (short). Rules of the project that are options there are set here. The working directory is the one
// that `make barcode-vectors` installs the packages in.
import { createRequire } from 'node:module';

const bwipjs = createRequire(`${process.cwd()}/`)('bwip-js');

const encoders = {
  C128: ['code128', {}],
  C128A: ['code128', { suppressc: true }],
  C128B: ['code128', { suppressc: true }],
  C128C: ['code128', {}],
  EAN13: ['ean13', {}],
  EAN8: ['ean8', {}],
  UPCA: ['upca', {}],
  UPCE: ['upce', {}],
  C39: ['code39', {}],
  'C39+': ['code39', { includecheck: true }],
  I25: ['interleaved2of5', {}],
  ITF14: ['itf14', {}],
  MSI: ['msi', {}],
  POSTNET: ['postnet', {}],
  GS1128: ['gs1-128', {}],
};

// Data Matrix by shape and identifiers, as the test names the variants.
const matrices = {
  DATAMATRIX: 'datamatrix',
  'DATAMATRIX rectangle': 'datamatrixrectangular',
  'DATAMATRIX gs1': 'gs1datamatrix',
  'DATAMATRIX rectangle gs1': 'gs1datamatrixrectangular',
};

// bwip-js draws wide elements of Interleaved 2 of 5 two modules wide; the project draws three.
const wideIsTwo = new Set(['I25', 'ITF14']);

export function bars(type, data) {
  if (matrices[type]) return matrixRows({ bcid: matrices[type], text: data }).join('/');
  const [bcid, options] = encoders[type];
  const { sbs, bhs } = bwipjs.raw({ bcid, text: data, ...options })[0];
  if (type === 'POSTNET') return bhs.map((height) => (height > 0.1 ? 'T' : 'S')).join('');
  const widths = wideIsTwo.has(type) ? sbs.map((width) => (width === 2 ? 3 : width)) : sbs;
  // Some end in the light margin, which is no bar.
  return widths.slice(0, widths.length - 1 + (widths.length % 2)).join('');
}

export function qrRows(data, level, version, mask) {
  return matrixRows({ bcid: 'qrcode', text: data, eclevel: level, version: String(version), mask: String(mask + 1) });
}

function matrixRows(options) {
  const { pixs, pixx } = bwipjs.raw(options)[0];
  const rows = [];
  for (let y = 0; y < pixs.length / pixx; y++) rows.push(pixs.slice(y * pixx, (y + 1) * pixx).join(''));
  return rows;
}

export const version = `bwip-js ${bwipjs.BWIPJS_VERSION.split(' ')[0]}`;
