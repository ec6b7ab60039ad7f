package leaks

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// word is a word that no log has by chance, or a phone number. The local part of an address and the host and path of an
// image have such words, too.
var word = regexp.MustCompile(`[A-Za-z0-9]{10,}`)

// Payloads are the words in the bodies of a run's requests, which no log holds unless LogPayloads is "on"
// (docs/decisions/requests.md#payload-logging).
type Payloads struct{ known sync.Map } // by word: whether the word is of a payload alone

// NewPayloads returns an empty set. Words of the contract without a digit, such as names of fields, are no payload.
func NewPayloads(contract []byte) *Payloads {
	p := &Payloads{}
	for _, found := range regexp.MustCompile(`[A-Za-z]{10,}`).FindAllString(string(contract), -1) {
		p.known.Store(found, false)
	}
	return p
}

// Remember adds the words of a body.
func (p *Payloads) Remember(body string) {
	in := json.NewDecoder(strings.NewReader(body))
	for token, err := in.Token(); err == nil; token, err = in.Token() {
		text, _ := token.(string)
		for _, found := range word.FindAllString(text, -1) {
			p.known.LoadOrStore(found, true)
		}
	}
}

// Quoted returns a finding for each word of a payload in a log.
func (p *Payloads) Quoted(log string) (found []string) {
	for line := range strings.Lines(log) {
		for _, text := range word.FindAllString(line, -1) {
			if payload, _ := p.known.Load(text); payload == true {
				found = append(found, fmt.Sprintf("the payload's %q is in the line %s", text, line))
			}
		}
	}
	return found
}
