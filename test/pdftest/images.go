package pdftest

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// Drawing is how much of an image the browser draws.
type Drawing int

// The values of Drawing.
const (
	Whole   Drawing = iota // all rows
	Part                   // the first rows
	Clear                  // all rows, and each pixel is transparent
	Nothing                // the image is broken
	Refused                // the image is too large
)

// Image is an image file, often a damaged one. The first word of the name is the format.
type Image struct {
	Name   string
	Body   []byte
	Pixels int64 // 0: the file has no size
	Drawn  Drawing
}

// side is the width and height of the intact images but WebP.
const side = 64

// Images returns intact, damaged and too large files of each format that a PDF may contain.
func Images() []Image {
	const pixels, giant = side * side, 20_000
	var (
		white                  = image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.White})
		whole, paletted, empty = pngOf(colours()), pngOf(palette()), pngOf(image.NewNRGBA(image.Rect(0, 0, side, side)))
		text                   = spoil(chunk("tEXt", []byte("Comment\x00text")), -1)
		photo                  = encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, colours(), nil) })
		frame, scan            = bytes.Index(photo, []byte{0xff, 0xc0}), bytes.Index(photo, []byte{0xff, 0xda})
		drawing                = encoded(func(b *bytes.Buffer) error { return gif.Encode(b, palette(), nil) })
		film                   = encoded(func(b *bytes.Buffer) error {
			return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{palette(), white}, Delay: []int{1, 1}})
		})
		descriptor = bytes.IndexByte(drawing, ',')
		lossy      = riff(data("VP8 ", lossyFrame))
		lossless   = riff(data("VP8L", losslessFrame))
		extended   = riff(canvas(0x10, 24, 16), data("ALPH", alpha), data("VP8 ", alphaFrame))
		animated   = riff(canvas(0x02, 24, 16), data("ANIM", make([]byte, 6)), webpFrame("VP8 ", lossyFrame),
			webpFrame("VP8L", losslessFrame))
	)
	return []Image{
		{"PNG", whole, pixels, Whole},
		{"PNG with a palette", paletted, pixels, Whole},
		{"PNG, transparent", empty, pixels, Clear},
		{"PNG without its end", whole[:len(whole)-12], pixels, Whole},
		{"PNG with a wrong checksum of a text", join(whole[:33], text, whole[33:]), pixels, Whole},
		{"PNG with a wrong checksum of a text before its palette", join(paletted[:33], text, paletted[33:]), pixels, Whole},
		{"PNG with bytes after its end", join(whole, make([]byte, 99)), pixels, Whole},
		{"PNG, the first half", whole[:len(whole)/2], pixels, Part},
		{"PNG without compressed data",
			join(whole[:33], chunk("IDAT", []byte("not compressed")), whole[len(whole)-12:]), pixels, Nothing},
		{"PNG, transparent, without compressed data",
			join(empty[:33], chunk("IDAT", []byte("not compressed")), empty[len(empty)-12:]), pixels, Nothing},
		{"PNG without data", join(whole[:33], whole[len(whole)-12:]), pixels, Nothing},
		{"PNG, the header", whole[:33], pixels, Nothing},
		{"PNG with a wrong checksum of its header", spoil(whole, 32), pixels, Nothing},
		{"PNG, half a header", whole[:20], 0, Nothing},
		{"PNG without a header", join(whole[:8], whole[33:]), 0, Nothing},
		{"PNG without width", patch(whole, 16, 0, 0, 0, 0), 0, Nothing},
		{"PNG, giant", join(whole[:8], chunk("IHDR", pngHeader(giant, giant)), whole[33:]), giant * giant, Refused},
		{"PNG, wider than any", join(whole[:8], chunk("IHDR", pngHeader(1<<32-1, 1<<32-1)), whole[33:]), 0, Nothing},

		{"JPEG", photo, pixels, Whole},
		{"JPEG without its end", photo[:len(photo)-2], pixels, Part},
		{"JPEG with bytes between segments", join(photo[:frame], []byte{0, 1, 2, 0xff}, photo[frame:]), pixels, Whole},
		{"JPEG with bytes after its end", join(photo, make([]byte, 99)), pixels, Whole},
		{"JPEG, the first half", photo[:len(photo)/2], pixels, Part},
		{"JPEG without data", photo[:scan], pixels, Nothing},
		{"JPEG with the start of its data", photo[:scan+14], pixels, Nothing},
		{"JPEG, half a header", photo[:frame+6], 0, Nothing},
		{"JPEG without a header", join(photo[:frame], photo[scan:]), 0, Nothing},
		{"JPEG without height", patch(photo, frame+5, 0, 0), 0, Nothing},
		{"JPEG, giant", patch(photo, frame+5, giant>>8, giant&0xff, giant>>8, giant&0xff), giant * giant, Refused},
		{"JPEG, giant, with rare sampling", patch(photo, frame+5, giant>>8, giant&0xff, giant>>8, giant&0xff, 3, 1, 0x33),
			giant * giant, Refused},

		{"GIF", drawing, pixels, Whole},
		{"GIF, animated", film, pixels, Whole},
		{"GIF, transparent", encoded(func(b *bytes.Buffer) error {
			return gif.Encode(b, image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.Transparent, color.Black}),
				nil)
		}), pixels, Clear},
		{"GIF without its end", drawing[:len(drawing)-1], pixels, Whole},
		{"GIF, animated, with a part of the second image", film[:len(film)-10], pixels, Whole},
		{"GIF larger than its screen", patch(drawing, 6, 8, 0, 8, 0), pixels, Whole},
		{"GIF, the first half", drawing[:len(drawing)/2], pixels, Part},
		{"GIF without data", drawing[:descriptor], pixels, Nothing},
		{"GIF, half a header", drawing[:9], 0, Nothing},
		{"GIF without width", patch(drawing[:descriptor], 6, 0, 0), 0, Nothing},
		{"GIF, giant", patch(drawing, 6, giant&0xff, giant>>8, giant&0xff, giant>>8), giant * giant, Refused},
		{"GIF with a giant image", patch(drawing, descriptor+5, giant&0xff, giant>>8, giant&0xff, giant>>8),
			giant * giant, Refused},

		{"WebP, lossy", lossy, 24 * 16, Whole},
		{"WebP, lossless", lossless, 24 * 16, Whole},
		{"WebP, extended", extended, 24 * 16, Whole},
		{"WebP, animated", animated, 24 * 16, Whole},
		{"WebP with bytes after its end", join(lossy, make([]byte, 99)), 24 * 16, Whole},
		{"WebP, lossy, without its last byte", lossy[:len(lossy)-1], 24 * 16, Nothing},
		{"WebP, lossy, the first half", lossy[:len(lossy)/2+8], 24 * 16, Nothing},
		{"WebP, lossless, the first half", lossless[:len(lossless)/2+8], 24 * 16, Nothing},
		{"WebP, extended, the first half", extended[:len(extended)/2], 24 * 16, Nothing},
		{"WebP, animated, the first image", animated[:len(animated)-20], 24 * 16, Nothing},
		{"WebP, extended, the header", extended[:30], 24 * 16, Nothing},
		{"WebP, the file header", lossy[:16], 0, Nothing},
		{"WebP, lossy, giant", riff(data("VP8 ", patch(lossyFrame, 6, 0xff, 0x3f, 0xff, 0x3f))), 0x3fff * 0x3fff, Refused},
		{"WebP, lossless, giant", riff(data("VP8L", patch(losslessFrame, 1, 0xff, 0xff, 0xff, 0x0f))),
			0x4000 * 0x4000, Refused},
		{"WebP, extended, giant", riff(canvas(0x10, giant, giant), data("ALPH", alpha), data("VP8 ", alphaFrame)),
			giant * giant, Refused},
		{"WebP, animated, giant", riff(canvas(0x02, giant, giant), data("ANIM", make([]byte, 6)),
			webpFrame("VP8 ", lossyFrame)), giant * giant, Refused},
	}
}

// The data of WebP images of 24 by 16 pixels: an opaque lossy one, an opaque lossless one, and a lossy one with alpha.
var (
	lossyFrame    = fromBase64("MAMAnQEqGAAQAD7ROLBTKCIlo5gBABoJZQCdACHfwL6UgAD+wu/+zgkk8QnGTz48l5eKAAAA")
	losslessFrame = fromBase64("LxfAAwAPcJHMiyBeRHX+Aw9k0jZzMP9q841JiOj/OABA85o3")
	alpha         = fromBase64("AQ/wwP+IiEAmbVMH9a92X5mEiP5PwLK8Og==")
	alphaFrame    = fromBase64("UAQAnQEqGAAQAD7RWKRMKCUjojAIAQAaCWwAnTKEcDegSYC3/wEdoWDEEADoWH8M+wtnce46AU7BkYmDevHSDoGW9QKAzR+wocGNL7u60QBEAAAA")
)

func fromBase64(text string) []byte {
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return body
}

// colours returns an opaque image without two equal rows.
func colours() image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * y), uint8(y), uint8(x * 37 % 100), 255})
		}
	}
	return m
}

// palette returns an opaque image of three colours.
func palette() *image.Paletted {
	m := image.NewPaletted(image.Rect(0, 0, side, side),
		color.Palette{color.Black, color.NRGBA{200, 0, 0, 255}, color.NRGBA{0, 0, 90, 255}})
	for i := range m.Pix {
		m.Pix[i] = uint8(i * i / 5 % 3)
	}
	return m
}

func encoded(encode func(*bytes.Buffer) error) []byte {
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func pngOf(m image.Image) []byte {
	return encoded(func(b *bytes.Buffer) error { return png.Encode(b, m) })
}

// Chequered returns a PNG of the given size in few bytes and little memory: a pixel is one bit.
func Chequered(width, height int) []byte {
	var packed bytes.Buffer
	pixels := zlib.NewWriter(&packed)
	row := append([]byte{0}, bytes.Repeat([]byte{0xf0}, (width+7)/8)...)
	for range height {
		_, _ = pixels.Write(row)
	}
	_ = pixels.Close()
	header := pngHeader(uint32(width), uint32(height))
	header[8], header[9] = 1, 0 // one bit of grey
	return join([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", header), chunk("IDAT", packed.Bytes()), chunk("IEND", nil))
}

// DataPNG returns the PNG of Chequered as a data URL.
func DataPNG(width, height int) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(Chequered(width, height))
}

func pngHeader(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32(nil, width)
	return append(binary.BigEndian.AppendUint32(header, height), 8, 2, 0, 0, 0)
}

// chunk returns a chunk of a PNG.
func chunk(kind string, body []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), kind+string(body)...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// data returns a chunk of a WebP.
func data(kind string, body []byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
	return append(b, make([]byte, len(body)%2)...)
}

func riff(chunks ...[]byte) []byte {
	return data("RIFF", join(append([][]byte{[]byte("WEBP")}, chunks...)...))
}

// canvas returns the first chunk of an extended WebP.
func canvas(flags byte, width, height int) []byte {
	return data("VP8X", join([]byte{flags, 0, 0, 0}, size24(width), size24(height)))
}

// webpFrame returns one image of an animated WebP.
func webpFrame(kind string, body []byte) []byte {
	return data("ANMF", join(make([]byte, 6), size24(24), size24(16), []byte{100, 0, 0, 0}, data(kind, body)))
}

// size24 returns a width or height as WebP stores them.
func size24(n int) []byte { return []byte{byte(n - 1), byte((n - 1) >> 8), byte((n - 1) >> 16)} }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// patch returns a copy of a file with other bytes.
func patch(body []byte, at int, with ...byte) []byte {
	body = bytes.Clone(body)
	copy(body[at:], with)
	return body
}

// spoil returns a copy of a file with one wrong byte. A negative place counts from the end.
func spoil(body []byte, at int) []byte {
	at = (at + len(body)) % len(body)
	return patch(body, at, ^body[at])
}
