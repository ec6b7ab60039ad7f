package gs1

import (
	"strings"
	"testing"

	"svcapi/test/must"
)

// docs/decisions/pictures.md#gs1: values are checked by GS1's table. The samples are of GS1 General Specifications and
// of the descriptions of the rules; a backslash precedes a parenthesis of a value.
func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{ // the data with | for the separator, or the error
		{"(01)09506000134352(10)AB-123", "|010950600013435210AB-123"},
		{"(10)AB-123(01)09506000134352", "|10AB-123|0109506000134352"},
		{"(01)09506000134352(3103)001250(17)261200(21)1", "|010950600013435231030012501726120021 1"},
		{`(90)a\(b\)c(91)d`, "|90a(b)c|91d"},
		{"(253)9506000134307", "|2539506000134307"}, {"(253)9506000134307ABC(90)1", "|2539506000134307ABC|901"},
		{"(8003)09506000134307", "|800309506000134307"}, {"(8008)261231235959", "|8008261231235959"},
		{"(4324)2612310000", "|43242612310000"}, {"(8013)1987654Ad4X4bL5ttr2310c2K", "|80131987654Ad4X4bL5ttr2310c2K"},
		{"(8007)GB82WEST12345698765432", "|8007GB82WEST12345698765432"}, {"(7258)1/2", "|72581/2"},
		{"(4309)18000000003600000000", "|430918000000003600000000"}, {"(10)A(10)A", "|10A|10A"},
		{"(423)144056", "|423144056"}, {"(8006)095060001343520102", "|8006095060001343520102"},

		{"(01)09506000134351", "identifier (01): the check digit must be 2; found 1"},
		{"(01)9506000134352", "identifier (01): takes 14 characters; found 13"},
		{"(00)395060001343000007", "identifier (00): the check digit must be 8; found 7"},
		{"(8003)19506000134307", "identifier (8003): needs 0"},
		{"(17)261332", "identifier (17): has no date of the calendar"}, {"(17)260230", "identifier (17): has no date"},
		{"(4326)261200", "identifier (4326): has no date of the calendar"},
		{"(7003)2612312400", "identifier (7003): needs a time, HHMM"},
		{"(10)", "identifier (10): takes 1 to 20 characters; found 0"},
		{"(10)" + strings.Repeat("A", 21), "identifier (10): takes 1 to 20 characters; found 21"},
		{"(10)é", "identifier (10): takes characters of GS1's set 82; found 'é'"}, {"(10)a b", "found ' '"},
		{"(3103)12345x", "identifier (3103): takes digits; found 'x'"}, {"(3106)123456", "the identifier (3106) is not in"},
		{"(05)1", "the identifier (05) is not in GS1's table"}, {"0109506000134352", "none begins at position 1"},
		{"(01)09506000134352(1)2", "none begins at position 19"}, {"(10)A(10)B", "occurs twice with different values"},
		{"(8013)1987654Ad4X4bL5ttr2310c3K", "identifier (8013): the check characters must be 2K; found 3K"},
		{"(8007)GB83WEST12345698765432", "the check digits of the IBAN are wrong"},
		{"(8006)095060001343520302", "identifier (8006): needs the number of a piece"}, {"(4300)50%", "needs percent signs"},
		{"(7258)0/2", "needs a position and a count"}, {"(8010)a", "takes characters of GS1's set 39; found 'a'"},
		{"(423)1440", "lacks 2 characters at its end"}, {"(401)ABC", "needs a company prefix first"},
	} {
		message, err := Parse(c.text)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = message.Data("|")
		}
		if !strings.Contains(strings.ReplaceAll(got, " ", ""), strings.ReplaceAll(c.want, " ", "")) ||
			strings.HasPrefix(c.want, "|") && err != nil {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// A companion that GS1's table asks for is reported where it is missing, and so is a pair that the table excludes.
func TestPairs(t *testing.T) {
	for text, want := range map[string]string{
		"(01)09506000134352(10)A": "/", "(10)A": "10/", "(02)09506000134352": "02/", "(37)1": "37/",
		"(00)395060001343000008(02)09506000134352(37)1": "/", "(01)09506000134352(37)1": "37/01+37",
		"(250)A(01)09506000134352": "250/", "(250)A(01)09506000134352(21)B": "/", "(3922)125(01)09506000134352": "3922/",
		"(3922)125(01)09506000134352(3103)001250":                         "/",
		"(01)09506000134352(3103)001250(3102)000125":                      "/3103+310n 3102+310n",
		"(01)09506000134352(02)09506000134352(37)1(00)395060001343000008": "/01+37 02+01",
	} {
		message, err := Parse(text)
		must.Succeed(t, err)
		if got := strings.Join(message.Lacking, " ") + "/" + strings.Join(message.Invalid, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Every row of the table can be read: its numbers, its sets and its rules are known.
func TestTable(t *testing.T) {
	rows := identifiers()
	if len(rows) < 500 || !rows["01"].predefined || rows["10"].predefined || rows["3105"] == nil {
		t.Errorf("%d identifiers", len(rows))
	}
	for name, row := range rows {
		if len(row.components) == 0 {
			t.Errorf("(%s) has no component", name)
		}
		for _, c := range row.components {
			if c.min < 1 || c.max < c.min || sets[c.set].characters == "" {
				t.Errorf("(%s): %+v", name, c)
			}
			for _, r := range c.rules {
				if rules()[r] == nil {
					t.Errorf("(%s) has the rule %q", name, r)
				}
			}
		}
	}
}

// A message that is read has the text of its elements, and reading that text gives the same data.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"(01)09506000134352(10)AB-123", `(90)a\(b\)`, "(", "(01", "()",
		"(99)\\", "(8013)22", "(253)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		escaped := ""
		for _, e := range m.elements {
			escaped += "(" + e.identifier + ")" + strings.NewReplacer("(", `\(`, ")", `\)`).Replace(e.value)
		}
		again, err := Parse(escaped)
		if err != nil || again.Data("\x1d") != m.Data("\x1d") || again.Text() != m.Text() {
			t.Errorf("%q is %q, %v", text, escaped, err)
		}
	})
}
