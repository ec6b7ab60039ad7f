package fetch

import (
	"encoding/binary"
	"math"

	"svcapi/functions/pdf/render/event"
)

// sizes are the permitted formats, each with the function that reads the size of an image. The first bytes decide, and
// never the name or the declared type. SVG is not permitted, because an SVG is a document.
var sizes = map[string]func(body []byte) (width, height int64){
	"image/png": sizeOfPNG, "image/jpeg": sizeOfJPEG, "image/gif": sizeOfGIF, "image/webp": sizeOfWebP,
}

// Measure returns the media type and the pixels of an image, and an error for an image of no permitted format or
// without a size. Measure reads the size alone, because only the browser knows which images it can draw.
func Measure(body []byte) (mediaType string, pixels int64, err error) {
	mediaType = event.Sniff(body)
	size := sizes[mediaType]
	if size == nil {
		return "", 0, errNoImage
	}
	width, height := size(body)
	if width <= 0 || height <= 0 || width > math.MaxInt32 || height > math.MaxInt32 {
		return mediaType, 0, errBroken
	}
	return mediaType, width * height, nil
}

// Each of the following functions returns the size of the canvas that a decoder allocates, or zeros where the body ends
// before the size. The functions ignore every other damage.

// sizeOfPNG reads the chunk IHDR, which is the first one (PNG, 11.2.1).
func sizeOfPNG(body []byte) (width, height int64) {
	if len(body) < 24 || string(body[12:16]) != "IHDR" {
		return 0, 0
	}
	return int64(binary.BigEndian.Uint32(body[16:])), int64(binary.BigEndian.Uint32(body[20:]))
}

// sizeOfJPEG reads the first frame header (ITU T.81, B.2.2). Decoders skip the bytes between two markers.
func sizeOfJPEG(body []byte) (width, height int64) {
	for at := 2; at+4 <= len(body); {
		marker := body[at+1]
		switch {
		case body[at] != 0xff || marker == 0x00 || marker == 0xff: // no marker, or a fill byte before a marker
			at++
			continue
		case marker == 0x01 || marker >= 0xd0 && marker <= 0xd8: // a marker without a segment
			at += 2
			continue
		case marker == 0xd9 || marker == 0xda: // the end of the image or the start of its data
			return 0, 0
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc: // a frame header
			if at+9 > len(body) {
				return 0, 0
			}
			return int64(binary.BigEndian.Uint16(body[at+7:])), int64(binary.BigEndian.Uint16(body[at+5:]))
		}
		at += 2 + max(2, int(binary.BigEndian.Uint16(body[at+2:])))
	}
	return 0, 0
}

// sizeOfGIF reads the logical screen and the first image descriptor (GIF89a, 18 and 20). A browser extends the screen
// to the first image.
func sizeOfGIF(body []byte) (width, height int64) {
	if len(body) < 13 {
		return 0, 0
	}
	word := func(at int) int64 { return int64(binary.LittleEndian.Uint16(body[at:])) }
	width, height = word(6), word(8)
	at := 13
	if flags := body[10]; flags&0x80 != 0 {
		at += 3 << (flags&7 + 1) // the global colour table
	}
	for at+1 < len(body) && body[at] == '!' { // an extension with its blocks of data
		for at += 2; at < len(body) && body[at] != 0; {
			at += 1 + int(body[at])
		}
		at++
	}
	if at+9 <= len(body) && body[at] == ',' {
		width, height = max(width, word(at+1)+word(at+5)), max(height, word(at+3)+word(at+7))
	}
	return width, height
}

// sizeOfWebP reads the canvas of an extended file, or else the header of the only frame (RFC 9649, 2.5 to 2.7).
func sizeOfWebP(body []byte) (width, height int64) {
	for at := int64(12); at+8 < int64(len(body)); {
		data := make([]byte, 10) // a lossless frame can be shorter
		copy(data, body[at+8:])
		switch string(body[at : at+4]) {
		case "VP8X":
			return int64(binary.LittleEndian.Uint32(data[3:])>>8) + 1, int64(binary.LittleEndian.Uint32(data[6:])>>8) + 1
		case "VP8 ":
			return int64(binary.LittleEndian.Uint16(data[6:]) & 0x3fff), int64(binary.LittleEndian.Uint16(data[8:]) & 0x3fff)
		case "VP8L":
			bits := binary.LittleEndian.Uint32(data[1:])
			return int64(bits&0x3fff) + 1, int64(bits>>14&0x3fff) + 1
		}
		length := int64(binary.LittleEndian.Uint32(body[at+4:]))
		at += 8 + length + length%2
	}
	return 0, 0
}
