package main

import (
	_ "embed" // refused.txt
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/pattern"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

//go:embed refused.txt
var refusedText string

// refusedFields returns the messages about the fields of refused.txt by name. The first call reads the text.
var refusedFields = sync.OnceValue(func() map[string]string {
	messages, message := map[string]string{}, ""
	for line := range strings.Lines(refusedText) {
		if text, ok := strings.CutPrefix(line, "= "); ok {
			message = strings.TrimSpace(text)
		} else if line[0] != '#' {
			for name := range strings.FieldsSeq(line) {
				messages[name] = message
			}
		}
	}
	return messages
})

// from returns the accounts whose integration lists the sender, with the sender in their settings. Without a sender all
// accounts send under their own one. The error for a sender in no list names the field.
func (r *sendRequest) from(accounts []upstream.Account) ([]upstream.Account, error) {
	if r.sender == "" {
		return accounts, nil
	}
	var allowed []upstream.Account
	for _, account := range accounts {
		if slices.Contains(strings.Split(account.Settings[vendors.SenderIDs], ","), r.sender) {
			account.Settings = maps.Clone(account.Settings)
			account.Settings[vendors.SenderID] = r.sender
			allowed = append(allowed, account)
		}
	}
	if len(allowed) == 0 {
		return nil, errSender
	}
	return allowed, nil
}

var errSender = &request.Error{
	Status: 422, Code: request.CodeValidationFailed, Message: "The request has missing or invalid fields.",
	Details: request.Problems{"sender_id": {"must be in the integration's list of senders"}},
}

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
