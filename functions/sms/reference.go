package main

import (
	"crypto/cipher"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
)

// references seals and opens the references of one project's sends in one environment (docs/decisions.md#references).
type references struct {
	scope string // begins the keys of the sends, and authenticates the references
	aead  cipher.AEAD
	hash  func(number string) string
}

func newReferences(p *project.Project, env project.Environment) (references, error) {
	aead, err := p.Cipher("sms reference")
	return references{p.ID + "/" + string(env) + "/", aead, p.RecipientID}, err
}

// reference is what the reference of a send holds, which is encrypted.
type reference struct {
	vendor string
	send   string    // the key of the send, without the scope
	ended  time.Time // to the second
	number string    // the keyed hash of the only recipient's number where the ID is not known
	id     string    // the vendor's; empty: not known
}

// maxID is the longest vendor's ID in a reference. A reference has up to 200 characters.
const maxID = 48

func (r references) seal(ref reference) string {
	if len(ref.id) > maxID {
		ref.id = ""
	}
	fields := []string{ref.vendor, ref.send, strconv.FormatInt(ref.ended.Unix(), 36), ref.number, ref.id}
	sealed := r.aead.Seal(nil, nil, []byte(strings.Join(fields, "\x00")), []byte(r.scope))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// open returns what a reference of this scope holds, and false for any other text.
func (r references) open(text string) (reference, bool) {
	sealed, _ := base64.RawURLEncoding.DecodeString(text)
	plain, err := r.aead.Open(nil, nil, sealed, []byte(r.scope))
	fields := strings.SplitN(string(plain), "\x00", 5)
	oneSpelling := base64.RawURLEncoding.EncodeToString(sealed) == text // the decoder accepts others
	if err != nil || len(fields) != 5 || !oneSpelling {
		return reference{}, false
	}
	seconds, err := strconv.ParseInt(fields[2], 36, 64)
	return reference{fields[0], fields[1], time.Unix(seconds, 0), fields[3], fields[4]}, err == nil
}

// past returns the send for its vendor.
func (r references) past(ref reference) vendors.PastSend {
	isTo := func(number string) bool { return r.hash(number) == ref.number }
	return vendors.PastSend{Key: r.scope + ref.send, ID: ref.id, Ended: ref.ended, IsTo: isTo}
}
