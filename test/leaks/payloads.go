package leaks

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// word is a word that no log has by chance, or a phone number. The local part of an address and the host and path of an image
// have such words, too.
var word = regexp.MustCompile(`[A-Za-z0-9]{10,}`)

// Payloads are the words in the bodies of a run's requests, which no log holds unless LogPayloads is "on"
// (docs/decisions.md#payload-logging).
type Payloads struct {
	mu    sync.Mutex
	known map[string]bool // false: a word of the contract
}

// NewPayloads returns an empty set. Words of the contract, such as names of fields, are no payload unless they have a digit.
func NewPayloads(contract []byte) *Payloads {
	p := &Payloads{known: map[string]bool{}}
	for _, text := range word.FindAllString(string(contract), -1) {
		if !strings.ContainsAny(text, "0123456789") {
			p.known[text] = false
		}
	}
	return p
}

// Remember adds the words of a body.
func (p *Payloads) Remember(body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for in := json.NewDecoder(strings.NewReader(body)); ; {
		token, err := in.Token()
		if err != nil {
			return
		}
		text, _ := token.(string)
		for _, found := range word.FindAllString(text, -1) {
			if _, known := p.known[found]; !known {
				p.known[found] = true
			}
		}
	}
}

// Quoted returns a finding for each line of a log that holds a word of a payload.
func (p *Payloads) Quoted(log string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(log) {
		for _, text := range word.FindAllString(line, -1) {
			if p.known[text] {
				found = append(found, fmt.Sprintf("the payload's %q is in the line %s", text, line))
				break
			}
		}
	}
	return found
}
