package admin

import (
	"crypto/rand"
	"encoding/base64"
	"strings"

	"svcapi/shared/project"
)

// NewID returns a project ID of 12 characters, 60 random bits.
func NewID() string { return randomText(12) }

// randomText returns up to 26 letters and digits of base32.
func randomText(length int) string { return strings.ToLower(rand.Text()[:length]) }

func newClientID(projectID string) string {
	return "svc_" + projectID + "_" + randomText(project.ClientIDTail)
}

// newSecret returns a client secret with 256 random bits.
func newSecret() string {
	b := make([]byte, 32)
	rand.Read(b) // documented never to fail
	return "svcs_" + base64.RawURLEncoding.EncodeToString(b)
}
