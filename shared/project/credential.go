package project

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"slices"

	"svcapi/shared/pattern"
)

var (
	// The patterns have no bounded repeats, which would slow the start: the code checks the lengths.
	idPattern       = pattern.New(`^[a-z0-9-]+$`)
	clientIDPattern = pattern.New(`^svc_([a-z0-9-]+)_([a-z2-7]+)$`)
	base32Lower     = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// ClientIDTail is the length of the text that distinguishes a project's client IDs.
const ClientIDTail = 8

// Reserved returns the words that mean more than one project, or the service itself: the secrets of the service's own
// vendor accounts have the owner "managed" (docs/decisions/operating.md#reserved-names).
func Reserved() []string { return []string{string(Managed), "all", "*"} }

// HasIDForm reports whether a text is 3 to 32 of a-z, 0-9 and "-".
func HasIDForm(id string) bool { return len(id) >= 3 && len(id) <= 32 && idPattern().MatchString(id) }

// ValidID reports whether a text can be a project ID: the text has the form of an ID and is no reserved word.
func ValidID(id string) bool { return HasIDForm(id) && !slices.Contains(Reserved(), id) }

// ParseClientID returns the project that a client ID names, and false for a text that is no client ID.
func ParseClientID(clientID string) (projectID string, ok bool) {
	m := clientIDPattern().FindStringSubmatch(clientID)
	if m == nil || !ValidID(m[1]) || len(m[2]) != ClientIDTail {
		return "", false
	}
	return m[1], true
}

// DigestSecret returns the SHA-256 of a client secret, which is stored in the secret's place.
func DigestSecret(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// accepts reports whether the secret is one of the live ones. accepts takes the same time for each of them, and for
// none.
func (c *Credential) accepts(digest [32]byte) bool {
	match := 0
	for i := range c.Secrets {
		match |= subtle.ConstantTimeCompare(c.Secrets[i].Digest[:], digest[:])
	}
	return match == 1
}
