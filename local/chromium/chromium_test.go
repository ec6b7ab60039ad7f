package chromium

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/test/must"
)

// The sizes of the layer of Chromium 153 and of its function, in bytes. The largest fonts have their own.
const (
	browserBytes, layerBytes, functionBytes = 209_022_176, 247_129_969, 11_612_425
	mebibyte                                = 1 << 20
)

var fontBytes = map[string]int{"noto-sans-sc": 10_559_284, "noto-sans-jp": 5_472_784, "noto-sans-kr": 6_185_868}

// pack compresses a file with Brotli, as the package of the browser holds its files.
const pack = `const fs = require("fs"), zlib = require("zlib")
const [from, to] = process.argv.slice(1)
fs.writeFileSync(to, zlib.brotliCompressSync(fs.readFileSync(from), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }))`

// TestSize: where browser and function grow beyond what Lambda takes, the build names the fonts that go, in the order
// of the list, and succeeds without them (docs/decisions/pdf.md#pdf-fonts).
func TestSize(t *testing.T) {
	const korean = "noto-sans-kr (5.9 MiB)"
	for _, c := range []struct {
		name              string
		browser, function int // MiB more
		fewer             int // lines of the list
		want              []string
	}{
		{"a browser 7 MiB larger", 7, 0, 0, []string{korean}},
		{"a browser 7 MiB larger, without that font", 7, 0, 1, nil},
		{"a function 10 MiB larger, and the browser", 10, 10, 0,
			[]string{korean, "noto-sans-jp (5.2 MiB)", "noto-sans-sc (10.1 MiB)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path string, bytes int) string {
				path = filepath.Join(dir, path)
				must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must.Succeed(t, os.WriteFile(path, make([]byte, bytes), 0o755))
				return path
			}
			run := func(name string, args ...string) string {
				cmd := exec.Command(name, args...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err != nil && !strings.Contains(string(out), "layer: too large") {
					t.Fatalf("%s %v: %v\n%s", name, args, err, out)
				}
				return string(out)
			}
			must.Succeed(t, os.CopyFS(filepath.Join(dir, "layers/chromium"), os.DirFS("../../layers/chromium")))
			list := must.Get(os.ReadFile("../../layers/chromium/fonts.txt")).Or(t)
			lines, rest := strings.SplitAfter(strings.TrimSuffix(string(list), "\n"), "\n"), layerBytes-browserBytes
			for _, line := range lines {
				words := strings.Fields(line)
				if words[0] == "#" {
					continue
				}
				write("node_modules/@expo-google-fonts/"+words[0]+"/LICENSE_FONT", 0)
				for _, style := range words[1:] {
					bytes := max(fontBytes[words[0]], 100_000)
					write(fmt.Sprintf("node_modules/@expo-google-fonts/%s/%s/%[1]s_%[2]s.ttf", words[0], style), bytes)
					rest -= bytes
				}
			}
			text := strings.TrimSuffix(strings.Join(lines[:len(lines)-c.fewer], ""), "\n") + "\n"
			must.Succeed(t, os.WriteFile(filepath.Join(dir, "layers/chromium/fonts.txt"), []byte(text), 0o600))
			write("node_modules/@sparticuz/chromium/LICENSE", 0)
			write("lib/libraries", rest)
			for name, from := range map[string]string{"chromium": write("browser", browserBytes+c.browser*mebibyte),
				"al2023.tar": "lib"} {
				if strings.HasSuffix(name, ".tar") {
					run("tar", "-cf", name, from)
					from = name
				}
				to := write("node_modules/@sparticuz/chromium/bin/"+name+".br", 0)
				run("node", "-e", pack, from, to)
			}
			packed := must.Get(os.ReadFile(filepath.Join(dir, "node_modules/@sparticuz/chromium/bin/chromium.br"))).Or(t)
			write("function", functionBytes+c.function*mebibyte)
			for path, text := range map[string]string{"bin/npm": "#!/bin/sh\ncp -r " + dir + "/node_modules .\n",
				"bin/python3": "#!/bin/sh\nexit 1\n", // no machine needs one
				"layers/chromium/browser.json": fmt.Sprintf("\"source\": \"npm\"\n\"version\": \"\"\n\"sha256\": \"%x\"\n",
					sha256.Sum256(packed)),
				"Makefile": "patch-fonts:\nbuild-PdfRenderFunction:\n\tcp " + dir +
					"/function $(ARTIFACTS_DIR)/bootstrap\n"} {
				must.Succeed(t, os.WriteFile(write(path, 0), []byte(text), 0o700))
			}
			_, after, tooLarge := strings.Cut(run("layers/chromium/build.sh", "out"), "layer: too large")
			var got []string
			for line := range strings.Lines(after) {
				if name, ok := strings.CutPrefix(line, "  "); ok {
					got = append(got, strings.TrimSpace(name))
				}
			}
			if strings.Join(got, ", ") != strings.Join(c.want, ", ") || tooLarge != (c.want != nil) {
				t.Errorf("too large: %v, fonts to remove: %q, want %q", tooLarge, got, c.want)
			}
		})
	}
}
