package vendors

import (
	"testing"

	"github.com/go-json-experiment/json"
)

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// Vendors use several types for texts and numbers, and several texts for an absent value.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		in                         string
		text, country, asn, number any
	}{
		{`"Colombo"`, "Colombo", nil, nil, nil},
		{`" Colombo "`, "Colombo", nil, nil, nil},
		{`""`, nil, nil, nil, nil},
		{`" "`, nil, nil, nil, nil},
		{`null`, nil, nil, nil, nil},
		{`"Unknown"`, nil, nil, nil, nil},
		{`"-"`, nil, nil, nil, nil},
		{`"N/A"`, nil, nil, nil, nil},
		{`"LK"`, "LK", "LK", nil, nil},
		{`"lk"`, "lk", "LK", nil, nil},
		{`"LKA"`, "LKA", nil, nil, nil},
		{`"AS9329"`, "AS9329", nil, "AS9329", nil},
		{`"as9329"`, "as9329", nil, "AS9329", nil},
		{`"9329"`, "9329", nil, "AS9329", nil}, // as a number it is no latitude
		{`9329`, "9329", nil, "AS9329", nil},
		{`"AS0"`, "AS0", nil, nil, nil},
		{`0`, "0", nil, nil, 0.0},
		{`-0`, "-0", nil, nil, 0.0},
		{`"AS9329 Sri Lanka Telecom"`, "AS9329 Sri Lanka Telecom", nil, nil, nil},
		{`6.9271`, "6.9271", nil, nil, 6.9271},
		{`"6.9271"`, "6.9271", nil, nil, 6.9271},
		{`"-77.4874"`, "-77.4874", nil, nil, -77.4874},
		{`90`, "90", nil, "AS90", 90.0},
		{`90.001`, "90.001", nil, nil, nil},
		{`"NaN"`, "NaN", nil, nil, nil},
		{`"Inf"`, "Inf", nil, nil, nil},
		{`"1e400"`, "1e400", nil, nil, nil},
		{`true`, "true", nil, nil, nil},
		{`{}`, nil, nil, nil, nil},
		{`["Colombo"]`, nil, nil, nil, nil},
	} {
		var value any
		if err := json.Unmarshal([]byte(c.in), &value); err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
		parsed := textOf(value)
		got := []any{deref(parsed.pointer()), deref(parsed.country()), deref(parsed.asn()), deref(parsed.within(maxLatitude))}
		for i, want := range []any{c.text, c.country, c.asn, c.number} {
			if got[i] != want {
				t.Errorf("%s: reading %d is %v, wants %v", c.in, i, got[i], want)
			}
		}
	}
}
