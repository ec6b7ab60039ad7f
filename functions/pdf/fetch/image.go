package fetch

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"
)

// format is a kind of image that may be loaded: told by its first bytes, never by its name or its declared type.
type format struct {
	mediaType string
	matches   func(body []byte) bool
	config    func(io.Reader) (image.Config, error)
	decode    func(io.Reader) (image.Image, error)
}

// formats are all kinds that are loaded. SVG is a document, not an image, here.
var formats = []format{
	{"image/png", starts("\x89PNG\r\n\x1a\n"), png.DecodeConfig, png.Decode},
	{"image/jpeg", starts("\xff\xd8\xff"), jpeg.DecodeConfig, jpeg.Decode},
	{"image/gif", either(starts("GIF87a"), starts("GIF89a")), gif.DecodeConfig, gif.Decode},
	{"image/webp", isWebP, webp.DecodeConfig, decodeWebP},
}

func starts(with string) func([]byte) bool {
	return func(body []byte) bool { return bytes.HasPrefix(body, []byte(with)) }
}

func either(a, b func([]byte) bool) func([]byte) bool {
	return func(body []byte) bool { return a(body) || b(body) }
}

func isWebP(body []byte) bool {
	return len(body) >= 16 && string(body[:4]) == "RIFF" && string(body[8:12]) == "WEBP"
}

// decodeWebP leaves animations to the browser: the library reads still images only. Their size is checked all the
// same.
func decodeWebP(r io.Reader) (image.Image, error) {
	head := make([]byte, 21)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	const animation = 1 << 1
	if string(head[12:16]) == "VP8X" && head[20]&animation != 0 {
		return nil, nil
	}
	return webp.Decode(io.MultiReader(bytes.NewReader(head), r))
}

// Measure tells the kind and the size in pixels of an image by its head. ok is false for what is none of the
// permitted kinds.
func Measure(body []byte) (mediaType string, pixels int64, ok bool) {
	f, size, err := measure(body)
	return f.mediaType, int64(size.Width) * int64(size.Height), err == nil
}

var errNoImage = errors.New("is no PNG, JPEG, GIF or WebP image")

func measure(body []byte) (format, image.Config, error) {
	for _, f := range formats {
		if f.matches(body) {
			size, err := f.config(bytes.NewReader(body))
			if err != nil && !unsupported(err) {
				return f, size, errBroken
			}
			return f, size, nil
		}
	}
	return format{}, image.Config{}, errNoImage
}

var errBroken = errors.New("cannot be decoded")

// intact tells whether an image can be decoded to its end.
func (f format) intact(body []byte) error {
	if _, err := f.decode(bytes.NewReader(body)); err != nil && !unsupported(err) {
		return errBroken
	}
	return nil
}

// unsupported tells the variants that are well formed but that the library does not read. The browser does.
func unsupported(err error) bool {
	var p png.UnsupportedError
	var j jpeg.UnsupportedError
	return errors.As(err, &p) || errors.As(err, &j)
}
