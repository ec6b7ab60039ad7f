package symbology

import (
	"fmt"
	"testing"
)

// docs/decisions/pictures.md#barcode-text: EAN and UPC in the groups of their standard, all other types as one text. No
// label overlaps another, and all are within the picture.
func TestLabels(t *testing.T) {
	for _, c := range []struct{ kind, data, want string }{
		{"EAN13", "590123412345", "[5 901234 123457]"},
		{"EAN8", "1234567", "[1234 5670]"},
		{"UPCA", "03600029145", "[0 36000 29145 2]"},
		{"UPCE", "123456", "[0 123456 5]"},
		{"UPCE", "1123456", "[1 123456 2]"},
		{"C128", "Ab 1\x00\t\x7f", "[Ab 1]"},
		{"C128A", "\x00", "[]"},
		{"C128B", "Hello", "[Hello]"},
		{"C128C", "0123", "[0123]"},
		{"C39", "A-1", "[A-1]"},
		{"C39+", "A-1", "[A-1]"},
		{"I25", "123", "[0123]"},
		{"ITF14", "1540014128876", "[15400141288763]"},
		{"MSI", "12", "[12]"},
		{"POSTNET", "12345-6789", "[12345-6789]"},
	} {
		kind, _ := Lookup(c.kind)
		code, err := kind.Encode(c.data)
		if err != nil {
			t.Fatal(err)
		}
		for quiet, margins := range map[bool][2]int{false: {}, true: {kind.QuietLeft, kind.QuietRight}} {
			var texts []string
			end := -margins[0]
			for _, l := range kind.Labels(code, quiet) {
				texts = append(texts, l.Text)
				if l.From < end || l.To <= l.From {
					t.Errorf("%s %q: %+v begins before %d", c.kind, c.data, l, end)
				}
				end = l.To
			}
			if got := fmt.Sprint(texts); got != c.want || end > code.Bounds().Dx()+margins[1] {
				t.Errorf("%s %q: %s up to %d, want %s", c.kind, c.data, got, end, c.want)
			}
		}
	}
}
