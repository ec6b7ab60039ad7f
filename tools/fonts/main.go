// Command fonts changes the fonts of the folder of its argument into those of the browser's layer, by the patch that
// layers/chromium/fonts.py makes (make fonts). The patch is what zstd --patch-from=SOURCES makes of the results, both
// concatenated in the order of fonts.sum.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// layer holds fonts.zst, and fonts.sum: a line with the SHA-256, the bytes and the name of each result.
const layer = "layers/chromium"

func main() {
	if err := patch(layer, os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "layer: fonts.txt, or the version of a font, is not the one of fonts.zst (%v): "+
			"make fonts writes fonts.zst again\n", err)
		os.Exit(1)
	}
}

// patch replaces the fonts of a folder, and changes none where one of the results would be wrong.
func patch(layer, folder string) error {
	list, noList := os.ReadFile(filepath.Join(layer, "fonts.sum"))
	delta, noDelta := os.ReadFile(filepath.Join(layer, "fonts.zst"))
	if err := errors.Join(noList, noDelta); err != nil {
		return err
	}
	var sources []byte
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	sums, sizes, names := make([]string, len(lines)), make([]int, len(lines)), make([]string, len(lines))
	for i, line := range lines {
		if _, err := fmt.Sscan(line, &sums[i], &sizes[i], &names[i]); err != nil {
			return err
		}
		source, err := os.ReadFile(filepath.Join(folder, names[i]))
		if err != nil {
			return err
		}
		sources = append(sources, source...)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(0, sources))
	if err != nil {
		return err
	}
	defer decoder.Close()
	results, err := decoder.DecodeAll(delta, nil)
	if err != nil {
		return err
	}
	fonts := make([][]byte, len(lines))
	for i, size := range sizes {
		if size > len(results) {
			return errors.New("fonts.sum has more bytes than fonts.zst")
		}
		fonts[i], results = results[:size], results[size:]
		if sum := sha256.Sum256(fonts[i]); fmt.Sprintf("%x", sum) != sums[i] {
			return fmt.Errorf("%s has another SHA-256 than fonts.sum", names[i])
		}
	}
	for i, font := range fonts {
		if err := os.WriteFile(filepath.Join(folder, names[i]), font, 0o644); err != nil {
			return err
		}
	}
	return nil
}
