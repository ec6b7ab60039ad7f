// Package qrcode draws QR codes (ISO/IEC 18004, model 2, versions 1 to 40).
//
// boombuler's encoder is not used here: its numeric mode takes a sign for a digit ("+94771234567" is read back as
// "094771234567"), it never mixes modes, and it needs 0.8 ms for a small symbol and 40 ms for the largest.
package qrcode

import (
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/boombuler/barcode"
)

// Level is the error correction of a symbol: the index into the standard's tables.
type Level int

// The four levels recover about 7, 15, 25 and 30 % of the symbol.
const (
	L Level = iota
	M
	Q
	H
)

const levelNames = "LMQH"

// ParseLevel returns the level of L, M, Q or H.
func ParseLevel(name string) Level { return Level(strings.Index(levelNames, name)) }

// String returns the level's letter.
func (l Level) String() string { return levelNames[l : l+1] }

// Symbol is a QR code of one pixel per module, without quiet zone. It is a [barcode.Barcode].
type Symbol struct {
	content string
	modules grid
}

// Metadata returns the kind of barcode.
func (s *Symbol) Metadata() barcode.Metadata {
	return barcode.Metadata{CodeKind: barcode.TypeQR, Dimensions: 2}
}

// Content returns the text in the symbol.
func (s *Symbol) Content() string { return s.content }

// ColorModel returns a model that has black and white.
func (s *Symbol) ColorModel() color.Model { return color.Gray16Model }

// Bounds returns the size in modules.
func (s *Symbol) Bounds() image.Rectangle { return image.Rect(0, 0, s.modules.size, s.modules.size) }

// At returns black where the module is dark.
func (s *Symbol) At(x, y int) color.Color {
	if s.modules.get(x, y) {
		return color.Black
	}
	return color.White
}

// Encode returns the smallest symbol for data, which is split into numeric, alphanumeric and byte segments such that
// the fewest bits are needed. Bytes are written as they are: readers recognise UTF-8, and the header that would
// announce it (ECI) is not read by all of them.
//
// The error is a client message: data does not fit the level, and the message names what would.
func Encode(data string, level Level) (*Symbol, error) {
	version, segments := smallest(data, level)
	if version == 0 {
		return nil, tooMuch(data, level)
	}
	codewords := protect(pack(data, segments, version, level), version, level)
	return &Symbol{data, newCanvas(codewords, version).bestMask(level)}, nil
}

// Fits reports whether the largest symbol holds data at the lowest error correction.
func Fits(data string) bool {
	most := 8 * dataBytes(maxVersion, L)
	if len(data) > longest(numeric, most) { // whatever its characters
		return false
	}
	_, bits := split(runsOf(data), maxVersion)
	return bits <= most
}

// smallest returns the smallest version that holds data, or 0, and the segments of data in that version.
func smallest(data string, level Level) (version int, segments []segment) {
	runs, bits := runsOf(data), 0
	for version = 1; version <= maxVersion; version++ {
		if version == 1 || class(version) != class(version-1) {
			segments, bits = split(runs, version)
		}
		if bits <= 8*dataBytes(version, level) {
			return version, segments
		}
	}
	return 0, nil
}

// tooMuch returns the client message with the level's capacity, and with a level that holds data if there is one.
func tooMuch(data string, level Level) error {
	bits := 8 * dataBytes(maxVersion, level)
	most := fmt.Sprintf("%d bytes, %d capital letters or %d digits",
		longest(byteMode, bits), longest(alphanumeric, bits), longest(numeric, bits))
	_, need := split(runsOf(data), maxVersion)
	for lower := level - 1; lower >= L; lower-- {
		if need <= 8*dataBytes(maxVersion, lower) {
			return fmt.Errorf("%d bytes are too much for error correction %s, which holds %s; error correction %s holds them",
				len(data), level, most, lower)
		}
	}
	return fmt.Errorf("%d bytes are too much for error correction %s, which holds %s; no level holds them",
		len(data), level, most)
}
