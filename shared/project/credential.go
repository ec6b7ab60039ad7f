package project

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"regexp"
	"slices"
)

var (
	// Without bounded repeats, which make compiling at start slow: lengths are checked apart.
	idForm       = regexp.MustCompile(`^[a-z0-9-]+$`)
	clientIDForm = regexp.MustCompile(`^svc_([a-z0-9-]+)_([a-z2-7]+)$`)
	base32Lower  = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// clientIDTail is the length of what tells a project's client IDs apart.
const clientIDTail = 8

// reserved are the words that mean more than one project, or the service itself: the secrets of the service's own vendor
// accounts have the owner "managed", so a project of that ID would share them.
var reserved = []string{string(Managed), "all", "*"}

// ValidID reports whether a text can be a project ID: it has the form of one and is no reserved word.
func ValidID(id string) bool {
	return len(id) >= 3 && len(id) <= 32 && idForm.MatchString(id) && !slices.Contains(reserved, id)
}

// ParseClientID gives the project that a client ID names. False: it is no client ID.
func ParseClientID(clientID string) (projectID string, ok bool) {
	m := clientIDForm.FindStringSubmatch(clientID)
	if m == nil || !ValidID(m[1]) || len(m[2]) != clientIDTail {
		return "", false
	}
	return m[1], true
}

// newID makes a project ID of 12 characters, 60 random bits.
func newID() string { return randomBase32(12) }

func newClientID(projectID string) string {
	return "svc_" + projectID + "_" + randomBase32(clientIDTail)
}

// newSecret makes a client secret with 256 random bits.
func newSecret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails, by its documentation
	return "svcs_" + base64.RawURLEncoding.EncodeToString(b)
}

func randomBase32(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base32Lower.EncodeToString(b)[:n]
}

// DigestSecret is what is stored of a client secret: its SHA-256.
func DigestSecret(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// accepts tells whether the secret is one of the live ones. It takes the same
// time whichever of them it is, or none.
func (c *Credential) accepts(digest [32]byte) bool {
	match := 0
	for i := range c.Secrets {
		match |= subtle.ConstantTimeCompare(c.Secrets[i].Digest[:], digest[:])
	}
	return match == 1
}
