package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/pattern"
)

// The values of LOG_PAYLOADS (docs/decisions/requests.md#payload-logging).
const (
	payloadsOn     = "on"
	payloadsOff    = "off"
	payloadsMasked = "masked"
)

// payload returns what the log holds of a decoded request's body, without half a character at its end; empty: nothing.
func (c Config) payload(body []byte) string {
	if c.LogPayloads == payloadsOff {
		return ""
	}
	text := body
	if c.LogPayloads != payloadsOn || hasPassword(body) { // in whatever spelling JSON has for the name of the field
		text = []byte(maskPayload(body))
	}
	return strings.ToValidUTF8(string(text[:min(len(text), maxPayload)]), "")
}

// hasPassword reports whether a field of a JSON object may have the name password. Only a name with escapes needs the
// parser.
func hasPassword(body []byte) bool {
	if plain := bytes.Contains(body, []byte("password")); plain || !bytes.Contains(body, []byte(`\u00`)) {
		return plain
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return !errors.Is(err, io.EOF) // the body has been parsed once
		}
		kind, length := d.StackIndex(d.StackDepth())
		if kind == '{' && length%2 == 1 && token.Kind() == '"' && token.String() == "password" {
			return true
		}
	}
}

// errorText returns what the log holds of an error's text, which may quote a part of the payload.
func (c Config) errorText(text, quoted string) string {
	if c.LogPayloads == payloadsOn {
		return text
	}
	if quoted != "" {
		text = strings.ReplaceAll(text, quoted, "("+mask(quoted)+")")
	}
	return phoneNumbers().ReplaceAllStringFunc(text, mask)
}

const (
	// keptDigits is the number of a phone number's last digits that a masked payload shows.
	keptDigits = 3
	// longestName and longestDigits are those of a field's name and of a number that a masked payload shows.
	longestName   = 32
	longestDigits = 6
)

var (
	// phoneNumbers are the numbers of openapi.yaml#PhoneNumber, in a vendor's spelling, too.
	phoneNumbers = pattern.New(`\b(?:94|0)?7\d{8}\b`)
	phoneNumber  = pattern.New(`^\+?\d{7,19}$`)
	choice       = pattern.New(`^[A-Za-z][A-Za-z0-9_+-]{0,31}$`)
	colour       = pattern.New(`^#?[0-9A-Fa-f]{3,8}$`)
	// shown are the fields whose texts are choices of the contract, and no data of a person.
	shown = map[string][]func() *regexp.Regexp{
		"send_method": {choice}, "type": {choice}, "format": {choice}, "error_correction": {choice}, "page_size": {choice},
		"orientation": {choice}, "response_type": {choice}, "provider": {choice},
		"color": {choice, colour}, "background": {choice, colour},
	}
)

// maskPayload returns a JSON object whose texts are reduced to their lengths, and whose phone numbers are reduced to
// their lengths and last digits. Names, booleans, short numbers and the choices of the contract stay.
func maskPayload(body []byte) string {
	var out bytes.Buffer
	d := jsontext.NewDecoder(bytes.NewReader(body))
	e := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	name := ""
	for out.Len() <= maxPayload {
		token, err := d.ReadToken()
		if err != nil { // the end: the body has been parsed once
			break
		}
		kind, length := d.StackIndex(d.StackDepth())
		isName := kind == '{' && length%2 == 1
		switch token.Kind() {
		case '"':
			text := token.String()
			switch {
			case isName:
				name = text
				if len(text) > longestName || phoneNumber().MatchString(text) {
					text = mask(text)
				}
			case kind != '{' || !slices.ContainsFunc(shown[name],
				func(r func() *regexp.Regexp) bool { return r().MatchString(text) }):
				text = mask(text)
			}
			token = jsontext.String(text)
		case '0':
			if text := token.String(); len(text) > longestDigits {
				token = jsontext.String(mask(text))
			}
		}
		if err := e.WriteToken(token); err != nil {
			break
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// mask returns the length of a text, and the last digits of a phone number.
func mask(text string) string {
	if phoneNumber().MatchString(text) {
		return fmt.Sprintf("%d digits, the last %s", len(strings.TrimPrefix(text, "+")), text[len(text)-keptDigits:])
	}
	return fmt.Sprintf("%d characters", utf8.RuneCountInString(text))
}
