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

func newReferences(p *project.Project, env project.Environment) references {
	return references{p.ID + "/" + string(env) + "/", p.Cipher("sms reference"), p.RecipientID}
}

// maxID is the longest vendor's ID in a reference. A reference has up to 200 characters.
const maxID = 48

// seal returns the reference of a send that has just ended. number is that of its only recipient; empty: it has several.
func (r references) seal(vendor, key, id, number string) string {
	fields := []string{vendor, strings.TrimPrefix(key, r.scope), strconv.FormatInt(time.Now().Unix(), 36), "", ""}
	switch {
	case id != "" && len(id) <= maxID:
		fields[4] = id
	case number != "":
		fields[3] = r.hash(number)
	}
	sealed := r.aead.Seal(nil, nil, []byte(strings.Join(fields, "\x00")), []byte(r.scope))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// open returns the send of a reference of this scope, and false for any other text.
func (r references) open(text string) (vendor string, send vendors.PastSend, ok bool) {
	sealed, _ := base64.RawURLEncoding.DecodeString(text)
	oneSpelling := base64.RawURLEncoding.EncodeToString(sealed) == text // the decoder accepts others
	plain, err := r.aead.Open(nil, nil, sealed, []byte(r.scope))
	if err != nil || !oneSpelling {
		return "", send, false
	}
	fields := strings.SplitN(string(plain), "\x00", 5)
	seconds, _ := strconv.ParseInt(fields[2], 36, 64) // seal has written it
	isTo := func(number string) bool { return r.hash(number) == fields[3] }
	return fields[0], vendors.PastSend{Key: r.scope + fields[1], ID: fields[4], Ended: time.Unix(seconds, 0), IsTo: isTo}, true
}
