package fetch

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

	"golang.org/x/image/webp"
)

// format is a permitted image format. The first bytes decide, and never the name or the declared type.
type format struct {
	mediaType string
	matches   func(body []byte) bool
	config    func(io.Reader) (image.Config, error)
	decode    func(io.Reader) (image.Image, error)
}

// formats are all permitted formats. SVG is not permitted, because an SVG is a document.
var formats = []format{
	{"image/png", starts("\x89PNG\r\n\x1a\n"), png.DecodeConfig, png.Decode},
	{"image/jpeg", starts("\xff\xd8\xff"), jpeg.DecodeConfig, jpeg.Decode},
	{"image/gif", starts("GIF87a", "GIF89a"), gif.DecodeConfig, gif.Decode},
	{"image/webp", isWebP, webp.DecodeConfig, decodeWebP},
}

func starts(prefixes ...string) func([]byte) bool {
	return func(body []byte) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return bytes.HasPrefix(body, []byte(prefix)) })
	}
}

func isWebP(body []byte) bool {
	return len(body) >= 16 && string(body[:4]) == "RIFF" && string(body[8:12]) == "WEBP"
}

// decodeWebP decodes still images only, as the library does. The size of an animation is still checked.
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

// Measure returns the media type and the pixels of an image. ok is false for an image of no permitted format.
func Measure(body []byte) (mediaType string, pixels int64, ok bool) {
	f, size, err := measure(body)
	return f.mediaType, int64(size.Width) * int64(size.Height), err == nil
}

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

// intact returns an error unless the whole image can be decoded.
func (f format) intact(body []byte) error {
	if _, err := f.decode(bytes.NewReader(body)); err != nil && !unsupported(err) {
		return errBroken
	}
	return nil
}

// unsupported reports whether an image is a valid variant that the library does not decode, but the browser does.
func unsupported(err error) bool {
	var p png.UnsupportedError
	var j jpeg.UnsupportedError
	return errors.As(err, &p) || errors.As(err, &j)
}
