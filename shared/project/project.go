// Package project stores projects, their credentials and their integrations, and finds the project of a request.
package project

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"svcapi/shared/pattern"
)

// Environment is one of a project's two environments. A credential or an integration belongs to one environment; both
// environments share the wallet and the settings of the project (docs/decisions/requests.md#environments).
type Environment string

// The environments.
const (
	Development Environment = "development"
	Production  Environment = "production"
)

// environments maps the values of X-ENV to environments.
var environments = map[string]Environment{
	"":            Development,
	"dev":         Development,
	"development": Development,
	"prod":        Production,
	"production":  Production,
}

// ParseEnvironment reads the header X-ENV: dev and development, prod and production, in any case. An empty header means
// development. ParseEnvironment returns false for any other value.
func ParseEnvironment(header string) (Environment, bool) {
	env, ok := environments[strings.ToLower(header)]
	return env, ok
}

// Kind is the purpose of an integration.
type Kind string

// The kinds of integration. Barcode includes QR codes.
const (
	SMS      Kind = "sms"
	Security Kind = "security"
	Location Kind = "location"
	Barcode  Kind = "barcode"
	PDF      Kind = "pdf"
	Currency Kind = "currency"
)

// Mode decides whose account at the vendor is used, and so who pays.
type Mode string

// The modes (docs/decisions/money.md#modes).
const (
	// Managed means that the service pays the vendor and charges the project credits.
	Managed Mode = "managed"
	// BYOK, the contract's Manual, means that the project uses its own vendor account and pays no credits.
	BYOK Mode = "byok"
)

// TestVendor is the name of the vendor that responds to test values. It exists only in development, calls nobody and
// costs nothing (docs/decisions/extensions.md#test-vendor).
const TestVendor = "test"

// RateLimit is the number of requests that a project may make in a window, in each environment.
type RateLimit struct {
	Requests int           // at least 1
	Window   time.Duration // an integer number of seconds, at least 1
}

// Project is a client of the service, without its credentials and integrations.
type Project struct {
	ID                string           // 3 to 32 of a-z, 0-9 and "-", and no reserved word; see ValidID
	Name              string           // for people
	Paused            bool             // every operation returns 503 project_paused
	Limit             RateLimit        // of each environment
	Limits            Limits           // of messages to one number, and of a day
	Trial             bool             // SMS are restricted to TrialDestinations
	TrialDestinations []string         // phone numbers in the format of NormalNumber
	Prices            map[string]int64 // credits by the name of the price list, only those that differ from it
	Created           time.Time        // in UTC, to the second
	Closed            time.Time        // in UTC, to the second; zero for a project that is not closed

	// HashKey is the random key, which never changes, of the hashes of numbers and ID, from which Cipher derives others.
	HashKey []byte `json:"-"`
	// Version counts the changes of the record. A change fails where the version has changed since the read.
	Version int64 `json:"-"`
}

// Limits are the limits against abuse that a project may have, over both environments (docs/limits-and-429.md).
type Limits struct {
	Recipients   []RecipientLimit // the shortest window first; nil: no limit
	DailyCredits int64            // credits of a UTC day; 0: no limit
	DailyUnits   int64            // SMS units of a UTC day through Manual (BYOK) integrations; 0: no limit
}

// RecipientLimit is the number of messages that a project may send to one phone number in a window.
type RecipientLimit struct {
	Messages int           `json:"messages"` // at least 1
	Window   time.Duration `json:"seconds"`  // a minute or more, an integer number of seconds that divides a day
}

// RecipientID returns a phone number's keyed hash (RFC 2104) for counters (docs/decisions/requests.md#recipient-limit).
func (p *Project) RecipientID(number string) string { return p.hash(number) }

// LoggedNumber returns a phone number's keyed hash for log lines, 16 letters and digits
// (docs/decisions/operating.md#logged-sends).
func (p *Project) LoggedNumber(number string) string { return p.hash("log " + number)[:16] }

// TenantID returns the keyed hash of the project's ID, which is no phone number: 32 letters and digits that Lambda
// takes as a tenant ID and writes into its logs (docs/decisions/pdf.md#pdf-isolation).
func (p *Project) TenantID() string { return p.hash(p.ID) }

// Cipher returns a cipher with a key of the project for one purpose (RFC 5869). Each encryption takes a random nonce.
func (p *Project) Cipher(purpose string) cipher.AEAD {
	key, _ := hkdf.Key(sha256.New, p.HashKey, nil, purpose, 32) // the length is valid
	block, _ := aes.NewCipher(key)                              // so is the key's
	aead, _ := cipher.NewGCMWithRandomNonce(block)
	return aead
}

func (p *Project) hash(text string) string {
	mac := hmac.New(sha256.New, p.HashKey)
	mac.Write([]byte(text))
	return base32Lower.EncodeToString(mac.Sum(nil)[:20])
}

var numberPattern = pattern.New(`^(?:0|\+94)(7\d{8})$`)

// NormalNumber converts 07XXXXXXXX or +947XXXXXXXX to +947XXXXXXXX, and returns false for any other text.
func NormalNumber(number string) (string, bool) {
	m := numberPattern().FindStringSubmatch(number)
	if m == nil {
		return "", false
	}
	return "+94" + m[1], true
}

// TrialAllows reports whether an SMS may go to a number: without a trial to any number, else to a trial destination.
func (p *Project) TrialAllows(number string) bool {
	if !p.Trial {
		return true
	}
	normal, ok := NormalNumber(number)
	return ok && slices.Contains(p.TrialDestinations, normal)
}

// Price returns the project's own price by the name of the price list, or the listed one
// (docs/decisions/money.md#own-prices).
func (p *Project) Price(name string, listed int64) int64 {
	if own, ok := p.Prices[name]; ok {
		return own
	}
	return listed
}

// SecretDigest is the stored digest of a client secret.
type SecretDigest struct {
	Digest  [32]byte  `json:"digest"`  // the SHA-256 of the secret's text
	Created time.Time `json:"created"` // in UTC, to the second
}

// Credential is one client ID with its live secrets (docs/decisions/requests.md#credentials).
type Credential struct {
	ClientID    string // svc_<project ID>_<8 characters>
	Environment Environment
	Active      bool           // false once the credential is revoked
	Secrets     []SecretDigest // the live ones, the oldest first: one secret, or two during a rotation
}

// Integration connects a project's environment to a vendor. A project has at most one integration for each environment,
// kind and vendor. The JSON form is the format of "svc project export".
type Integration struct {
	ID          string            `json:"-"` // "<environment>/<kind>/<vendor>", unique in its project
	Environment Environment       `json:"environment"`
	Kind        Kind              `json:"kind"`
	Vendor      string            `json:"vendor"` // a name of the kind's vendor table
	Mode        Mode              `json:"mode"`
	Active      bool              `json:"active"`
	SetAside    bool              `json:"-"`        // inactive only while its vendor is out
	Priority    int               `json:"priority"` // of the active integrations, the lowest number first
	Settings    map[string]string `json:"settings"` // without secrets; readers do not change them
	Updated     time.Time         `json:"-"`        // in UTC, to the second
}

// IntegrationID returns the ID of the integration with that environment, kind and vendor.
func IntegrationID(env Environment, kind Kind, vendor string) string {
	return string(env) + "/" + string(kind) + "/" + vendor
}

// Record is a project with its credentials and integrations. Requests share a record, and readers do not change it.
type Record struct {
	Project
	Credentials  []Credential
	Integrations []Integration
}

// Active returns the active integrations of a kind in an environment, by priority, then by vendor name.
func (r *Record) Active(kind Kind, env Environment) []Integration {
	var active []Integration
	for _, i := range r.Integrations {
		if i.Active && i.Kind == kind && i.Environment == env {
			active = append(active, i)
		}
	}
	slices.SortFunc(active, func(a, b Integration) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Vendor, b.Vendor))
	})
	return active
}

// Chain returns the active integrations that a request may use, in their order. In development the vendor "test" takes
// the place of all others, and elsewhere no request uses it.
func (r *Record) Chain(kind Kind, env Environment) []Integration {
	chain, isTest := r.Active(kind, env), func(i Integration) bool { return i.Vendor == TestVendor }
	if n := slices.IndexFunc(chain, isTest); n >= 0 && env == Development {
		return chain[n : n+1]
	}
	return slices.DeleteFunc(chain, isTest)
}

// Credential returns the credential with that client ID, active or not, or nil where the project has none such.
func (r *Record) Credential(clientID string) *Credential {
	for i := range r.Credentials {
		if r.Credentials[i].ClientID == clientID {
			return &r.Credentials[i]
		}
	}
	return nil
}

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

// accepts reports whether the secret is one of the live ones, in the same time for each of them, and for none.
func (c *Credential) accepts(digest [32]byte) bool {
	match := 0
	for i := range c.Secrets {
		match |= subtle.ConstantTimeCompare(c.Secrets[i].Digest[:], digest[:])
	}
	return match == 1
}
