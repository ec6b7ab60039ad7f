package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"svcapi/functions/barcode/draw"
	"svcapi/functions/barcode/qrcode"
	"svcapi/functions/barcode/symbology"
	"svcapi/test/must"
)

// tool returns the path of a file that `make barcode-tools` installs.
func tool(t testing.TB, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".local", "barcode"}, elements...)...))
	must.Succeed(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v\nrun make barcode-tools first: it installs the decoder that reads the pictures", err)
	}
	return path
}

// sample is the picture of a request and the text that a reference decoder must read.
type sample struct {
	about  string
	format string // as zxing-cpp names it
	text   string
	level  string // of a QR code
	png    []byte
	width  int
	height int
}

// formats are the decoder's names of the types that it reads. It knows neither MSI nor POSTNET.
var formats = map[string]string{
	"C128": "Code128", "C128A": "Code128", "C128B": "Code128", "C128C": "Code128", "EAN13": "EAN13", "EAN8": "EAN8",
	"UPCA": "UPCA", "UPCE": "UPCE", "C39": "Code39Std", "C39+": "Code39Std", "I25": "ITF", "ITF14": "ITF",
	"GS1128": "Code128", "DATAMATRIX": "DataMatrix",
}

// asRead returns the text that the decoder reports for a type's data: UPC as EAN-13, Code 39 with its check character.
func asRead(code symbology.Symbol, name, data string) string {
	switch name {
	case "UPCA":
		return "0" + code.Text
	case "GS1128":
		return elements(data)
	case "DATAMATRIX":
		latin1 := []byte{}
		for _, r := range data {
			latin1 = append(latin1, byte(r))
		}
		return string(latin1)
	case "UPCE":
		return "" // compared by bars and by its UPC-A below
	case "C39+":
		sum := 0
		for _, c := range data {
			sum += strings.IndexRune(code39, c)
		}
		return data + code39[sum%43:sum%43+1]
	}
	return code.Text
}

// elements returns the data of randomElements as a reader gives it: (10), (21) and (91) have no pre-defined length.
func elements(data string) string {
	var b strings.Builder
	parts := strings.Split(data, "(")[1:]
	for i, part := range parts {
		b.WriteString(strings.Replace(part, ")", "", 1))
		if last := i == len(parts)-1; !last && slices.Contains([]string{"10", "21", "91"}, part[:2]) {
			b.WriteString("\x1d")
		}
	}
	return b.String()
}

// upcA returns the UPC-A of a UPC-E, by the table of GS1 General Specifications, figure 5.2.2.4.2-1.
func upcA(six string) string {
	switch last := six[5]; last {
	case '0', '1', '2':
		return "0" + six[:2] + six[5:] + "0000" + six[2:5]
	case '3':
		return "0" + six[:3] + "00000" + six[3:5]
	case '4':
		return "0" + six[:4] + "00000" + six[4:5]
	default:
		return "0" + six[:5] + "0000" + six[5:]
	}
}

// compareDecoded decodes all pictures with the reference decoder, in one process, and compares the texts.
func compareDecoded(t *testing.T, all []sample) {
	t.Helper()
	var in bytes.Buffer
	for _, s := range all {
		fmt.Fprintf(&in, "{\"png\": %q, \"format\": %q}\n", base64.StdEncoding.EncodeToString(s.png), s.format)
	}
	cmd := exec.CommandContext(t.Context(), tool(t, "venv", "bin", "python"), filepath.Join("testdata", "decode.py"))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	must.Succeed(t, err)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for _, s := range all {
		if !lines.Scan() {
			t.Fatalf("%s: no result", s.about)
		}
		var result struct {
			Size  [2]int
			Mode  string
			Found []struct {
				Bytes []byte
				Level string
			}
		}
		must.Succeed(t, json.Unmarshal(lines.Bytes(), &result))
		if result.Size != [2]int{s.width, s.height} || result.Mode != "P" {
			t.Errorf("%s: a picture of %v, mode %s, want %d by %d with a palette", s.about, result.Size,
				result.Mode, s.width, s.height)
		}
		if len(result.Found) != 1 || string(result.Found[0].Bytes) != s.text || result.Found[0].Level != s.level {
			t.Errorf("%s: read %q, want %q", s.about, result.Found, s.text)
		}
	}
}

// Random data of every type that the decoder knows is read back from its picture, at every width factor, with and
// without quiet zone and text (docs/decisions/pictures.md#quiet-zone).
func TestBarcodesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []sample
	add := func(name, data string, factor int, quiet bool) {
		request := barcodeRequest{
			data: data, kind: name, factor: factor, height: 20 + r.IntN(100), color: "000000", background: "FFFFFF",
			quietZone: quiet,
			text:      len(all)%2 == 0 && name != "DATAMATRIX", rotation: len(all) / 2 % 4 * 90,
		}
		if name == "DATAMATRIX" {
			request.rotation *= min(1, factor-1) // the decoder reads no turned symbol of one pixel a module
			if request.rectangle = len(all)%3 == 0 && len(data) < 20; len(all)%5 < 2 {
				data, request.gs1 = randomElements(r), true
				request.data, request.rectangle = data, len(all)%5 == 0 && len(data) < 60
			}
		}
		picture, _, err := request.picture()
		if err != nil {
			t.Fatalf("%s %q: %v", name, data, err)
		}
		kind, _ := symbology.Variant(name, request.rectangle, request.gs1)
		code, err := kind.Encode(data)
		must.Succeed(t, err)
		want := asRead(code, name, data)
		if request.gs1 {
			want = elements(data)
		}
		width, height := picture.Size()
		if name == "UPCE" {
			full := upcA(code.Text[1:7])
			if code.Text[0] == '1' {
				full = "1" + full[1:]
			}
			want = "0" + full + code.Text[7:]
		}
		if formats[name] == "ITF" && len(want) < 6 {
			return // the decoder takes no shorter ones; they are compared bar by bar
		}
		all = append(all, sample{
			about: fmt.Sprintf("%s %q, factor %d, quiet zone %v, text %v, gs1 %v, rectangle %v, rotation %d", name, data, factor,
				quiet, request.text, request.gs1, request.rectangle, request.rotation),
			format: formats[name], text: want, png: picture.PNG(), width: width, height: height,
		})
	}
	for _, name := range symbology.Names() {
		if formats[name] == "" {
			continue
		}
		for i := range 80 {
			add(name, randomData(r, name), 1+i%4, i%8 < 4)
		}
	}
	compareDecoded(t, all)
}

// QR codes of every version and level, and of every mode and script, are read back from their pictures.
func TestQRCodesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all []sample
	versions := map[string]bool{}
	add := func(data, level string) {
		code, err := qrcode.Encode(data, level)
		if err != nil {
			t.Fatalf("%d bytes at %s: %v", len(data), level, err)
		}
		side := code.Size.X
		versions[fmt.Sprint(level, (side-17)/4)] = true
		request := qrRequest{data: data, level: level, size: max(64, (side+8)*(1+r.IntN(3))+r.IntN(7)), margin: 4,
			color: "000000", background: "FFFFFF"}
		request.size = min(request.size, 1024)
		picture, err := request.picture()
		must.Succeed(t, err)
		all = append(all, sample{
			about: fmt.Sprintf("QR %s, %d bytes, %.30q", level, len(data), data), format: "QRCode",
			text: data, level: level, png: picture.PNG(), width: request.size, height: request.size,
		})
	}
	for _, level := range []string{"L", "M", "Q", "H"} {
		// The smallest step between two versions is 7 bytes.
		for n, side := 1, 0; ; n += 7 {
			data := random(r, small+digits, n)
			code, err := qrcode.Encode(data, level)
			if err != nil {
				break
			}
			if code.Size.X > side {
				side = code.Size.X
				add(data, level)
			}
		}
		for i := range 36 {
			alphabets := []string{digits, digits + capitals + " $%*+-./:", "ABC012345 a", "äöüß", "日本語ශ්\u200dරී", "😀é0A"}
			add(random(r, alphabets[i%len(alphabets)], 1+i*i), level)
		}
	}
	for _, data := range []string{
		"+94771234567", "-1", "a", "0", "https://example.com/pay?amount=1250.00&to=0771234567",
		"MIXED 0123456789012345 lower",
		"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Zoë\r\nEND:VCARD", "\x00\x01\x7f", "ශ්\u200dරී ලංකා", strings.Repeat("x",
			2953), strings.Repeat("7", 7089), strings.Repeat("A:", 2148),
	} {
		add(data, "L")
	}
	compareDecoded(t, all)
	if len(versions) != 160 {
		t.Errorf("%d combinations of level and version, want 160", len(versions))
	}
}

// randomData returns data that a type accepts.
func randomData(r *rand.Rand, name string) string {
	switch name {
	case "C128": // stretches of digits, letters and any characters
		data := ""
		for range 1 + r.IntN(6) {
			data += random(r, []string{digits, capitals, small, ascii()}[r.IntN(4)], 1+r.IntN(12))
		}
		return data
	case "C128A":
		return random(r, ascii()[:96], 1+r.IntN(80))
	case "C128B":
		return random(r, ascii()[32:], 1+r.IntN(80))
	case "C128C":
		return random(r, digits, 2+2*r.IntN(39))
	case "UPCE":
		// Last digits 0 to 2 are free of forbidden forms; the others have no 0 in the third to fifth place.
		if r.IntN(2) == 0 {
			return random(r, digits, 5) + fmt.Sprint(r.IntN(3))
		}
		return fmt.Sprintf("%s%d%d%d%d", random(r, digits, 2), 3+r.IntN(7), 1+r.IntN(9), 1+r.IntN(9), 3+r.IntN(7))
	case "C39", "C39+":
		return random(r, code39, 1+r.IntN(40))
	case "I25":
		return random(r, digits, 1+r.IntN(40))
	case "GS1128":
		return randomElements(r)
	case "DATAMATRIX":
		return random(r, digits+"ABCDEFGHIJabcdefghij ./-\x00\x7f\u00a0éÿ", 1+r.IntN(80))
	}
	return random(r, digits, map[string]int{"EAN13": 12, "EAN8": 7, "UPCA": 11, "ITF14": 13}[name])
}

// randomElements returns GS1 elements of at most 48 characters, with and without pre-defined lengths.
func randomElements(r *rand.Rand) string {
	all := []string{
		"(01)09506000134352", fmt.Sprintf("(17)26%02d%02d", 1+r.IntN(12), r.IntN(29)), "(3103)" + random(r, digits, 6),
		"(10)" + random(r, capitals, 1+r.IntN(4)), "(21)" + random(r, digits, 1+r.IntN(4)),
		"(91)" + random(r, small, 1+r.IntN(4)),
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all[:1+r.IntN(len(all)-1)], "")
}

// The alphabets of random data; that of Code 39 is in the order of its values.
const (
	digits   = "0123456789"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	small    = "abcdefghijklmnopqrstuvwxyz"
	code39   = digits + capitals + "-. $/+%"
)

// ascii returns the characters 0 to 127.
func ascii() string {
	all := make([]byte, 128)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}

// random is about n bytes of an alphabet.
func random(r *rand.Rand, alphabet string, n int) string {
	characters := []rune(alphabet)
	var b strings.Builder
	for b.Len() < n {
		b.WriteRune(characters[r.IntN(len(characters))])
	}
	return b.String()
}

// BenchmarkLibzint compares barcodes with libzint in the same run, turn by turn, by the least processor time that both
// need for a symbol. The goal is a ratio of 0.50. The variable ZINT names the program of testdata/zint.c: make
// bench-barcode sets the variable.
func BenchmarkLibzint(b *testing.B) {
	if os.Getenv("ZINT") == "" {
		b.Skip("ZINT is not set")
	}
	for _, c := range []struct {
		kind, data string
		count      int // symbols per turn
		encode     func(data string) (symbology.Symbol, error)
	}{
		{"C128", "SVC-2026/11 00481516", 3000, code128PNG},
		{"QR", "hello, world", 3000, qrCode},
		{"QR", "https://example.com/pay/481516", 2000, qrCode},
		{"QR", strings.Repeat("Two lines of tea, 12 kg; ", 92), 50, qrCode},
	} {
		b.Run(fmt.Sprintf("%s,bytes=%d", c.kind, len(c.data)), func(b *testing.B) {
			var zint, own []float64 // nanoseconds per symbol
			var allocations float64
			for range 9 {
				ns, modules := runZint(b, c.kind, c.data, c.count)
				zint = append(zint, ns)
				start := processorTime(b)
				allocations = testing.AllocsPerRun(c.count-1, func() { // it makes one run more than asked for
					if code, err := c.encode(c.data); err != nil || code.Size.X != modules {
						b.Fatalf("libzint has %d modules (%v)", modules, err)
					}
				})
				own = append(own, float64(processorTime(b)-start)/float64(c.count))
			}
			b.ReportMetric(0, "ns/op") // of all turns
			b.ReportMetric(slices.Min(zint)/1000, "libzint-µs")
			b.ReportMetric(slices.Min(own)/1000, "own-µs")
			b.ReportMetric(slices.Min(own)/slices.Min(zint), "ratio")
			b.ReportMetric(allocations, "allocations")
		})
	}
}

// runZint returns libzint's nanoseconds per symbol, and the modules per side.
func runZint(b *testing.B, kind, data string, count int) (ns float64, modules int) {
	b.Helper()
	var printed bytes.Buffer
	cmd := exec.Command(os.Getenv("ZINT"), kind, data, strconv.Itoa(count))
	cmd.Stderr = &printed
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %s", err, &printed)
	}
	if _, err := fmt.Fscan(&printed, &ns, &modules); err != nil {
		b.Fatal(err)
	}
	return ns, modules
}

// processorTime returns the nanoseconds that this process has used so far.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	must.Succeed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func code128PNG(data string) (symbology.Symbol, error) {
	kind, _ := symbology.Lookup("C128")
	code, err := kind.Encode(data)
	if err == nil {
		draw.Linear(kind.Name, code, 2, 80, 0, 0).PNG()
	}
	return code, err
}

func qrCode(data string) (symbology.Symbol, error) { return qrcode.Encode(data, "M") }
