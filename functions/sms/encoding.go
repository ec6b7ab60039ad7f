package main

import (
	"fmt"
	"slices"
	"strings"

	"svcapi/functions/sms/units"
	"svcapi/shared/pattern"
	"svcapi/shared/request"
)

// maxNamed is the maximum of characters that a warning names.
const maxNamed = 5

// encoder chooses the alphabet of the texts of one request, and counts what the response warns of.
type encoder struct {
	smart             bool // replace characters (docs/decisions/sms.md#smart-encoding)
	unicode, replaced beyondGSM
}

// beyondGSM is what the texts of a request have that is not in the GSM alphabet.
type beyondGSM struct {
	count   int      // occurrences of characters
	named   []string // distinct characters, such as U+2019
	units   int      // of the texts with replacements
	lasting bool     // some character has no replacement
}

// encode returns the text to send. A text whose characters beyond the GSM alphabet all have a replacement is sent with
// the replacements, where the request asks for them and the text needs no more units.
func (e *encoder) encode(text string) string {
	before, unicode := units.Count(text)
	if !unicode {
		return text
	}
	plain, replaceable := units.Plain(text)
	after, _ := units.Count(plain)
	seen, result := &e.unicode, text
	if e.smart && replaceable && after <= before {
		seen, result = &e.replaced, plain
	}
	seen.units += after
	seen.lasting = seen.lasting || !replaceable
	for _, r := range text {
		if units.InGSM(r) {
			continue
		}
		seen.count++
		if name := fmt.Sprintf("U+%04X", r); len(seen.named) < maxNamed && !slices.Contains(seen.named, name) {
			seen.named = append(seen.named, name)
		}
	}
	return result
}

// warning returns the warning about the characters (openapi.yaml#Warnings).
func (b *beyondGSM) warning(name string) string {
	warning := fmt.Sprintf("%s;n=%d", name, b.count)
	if !b.lasting {
		warning += fmt.Sprintf(";units=%d", b.units)
	}
	return warning + `;chars="` + strings.Join(b.named, " ") + `"`
}

// warn adds the warnings of a send (docs/decisions/sms.md#smart-encoding).
func (r *sendRequest) warn(in *request.Input, e *encoder) {
	if e.unicode.count > 0 {
		in.Warn(e.unicode.warning("unicode"))
	}
	if e.replaced.count > 0 {
		in.Warn(e.replaced.warning("smart-encoding"))
	}
	count := 0
	for i := range r.recipients {
		if unassignedPrefix().MatchString(r.recipients[i].To) {
			count++
		}
	}
	if count > 0 {
		in.Warn(fmt.Sprintf("unassigned-prefix;n=%d", count))
	}
}

// unassignedPrefix matches numbers whose prefix no mobile operator of Sri Lanka has (libphonenumber 9.0.43).
var unassignedPrefix = pattern.New(`^\+947[39]`)
