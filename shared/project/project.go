// Package project holds what the service knows of its clients: projects, their
// credentials and their integrations, how they are stored, and how a request
// is told to belong to one of them.
package project

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Environment is one of a project's two sides. Credentials and integrations
// belong to one each; the wallet and the settings of a project are shared.
type Environment string

// The environments.
const (
	Development Environment = "development"
	Production  Environment = "production"
)

// environments maps what a client may write to what it means.
var environments = map[string]Environment{
	"":            Development,
	"dev":         Development,
	"development": Development,
	"prod":        Production,
	"production":  Production,
}

// Environments lists the environments in the order in which people read them.
func Environments() []Environment { return []Environment{Development, Production} }

// ParseEnvironment reads the header X-ENV: dev and development, prod and
// production, in any case; empty means development. False: no such environment.
func ParseEnvironment(header string) (Environment, bool) {
	env, ok := environments[strings.ToLower(header)]
	return env, ok
}

// Kind is what an integration is for.
type Kind string

// The kinds of integration. QR codes come with Barcode.
const (
	SMS      Kind = "sms"
	Security Kind = "security"
	Location Kind = "location"
	Barcode  Kind = "barcode"
	PDF      Kind = "pdf"
	Currency Kind = "currency"
)

// Kinds lists every kind of integration.
func Kinds() []Kind { return []Kind{SMS, Security, Location, Barcode, PDF, Currency} }

// Mode says whose account at the vendor is used, and so who pays.
type Mode string

// The modes of the contract.
const (
	// Managed: the service pays the vendor and charges the project credits.
	Managed Mode = "managed"
	// BYOK, the contract's Manual: the project brings its own vendor account and pays no credits.
	BYOK Mode = "byok"
)

// RateLimit is how many requests a project may make per window, in each environment.
type RateLimit struct {
	// Requests is at least 1.
	Requests int
	// Window is a whole number of seconds, at least 1.
	Window time.Duration
}

// Project is a client of the service, without its credentials and integrations.
type Project struct {
	// ID is 3 to 32 of a-z, 0-9 and "-", and no reserved word; see ValidID.
	ID string
	// Name is for people.
	Name string
	// Paused projects get 503 project_paused for every operation.
	Paused bool
	// Limit holds for each environment on its own.
	Limit RateLimit
	// Trial restricts SMS to TrialDestinations.
	Trial bool
	// TrialDestinations are phone numbers in the form of NormalNumber.
	TrialDestinations []string
	// Parts are for a project that is too busy for one item of DynamoDB.
	Parts Parts
	// Created is in UTC, to the second.
	Created time.Time

	// version counts the changes of the whole record; a change is made on the version it was decided on.
	version int64
}

// Parts is how many parts a project's wallet, the partitions of its ledger and the counter of its rate
// limit are kept in.
type Parts struct {
	// Count is 0 where nothing was ever split.
	Count int
	// Before is what Count was until Since.
	Before int
	// Since is in UTC, to the second. It lies ahead when Count is set, so that every instance knows by
	// then, and all count a window of the rate limit in the same way.
	Since time.Time
}

// At is the number of parts at a time, or in the window that begins then: at least 1.
func (p Parts) At(t time.Time) int {
	if t.Before(p.Since) {
		return max(p.Before, 1)
	}
	return max(p.Count, 1)
}

var numberPattern = regexp.MustCompile(`^(?:0|\+94)(7\d{8})$`)

// NormalNumber brings a phone number, 07XXXXXXXX or +947XXXXXXXX, to its one
// normal form +947XXXXXXXX. False: it is none of the two.
func NormalNumber(number string) (string, bool) {
	m := numberPattern.FindStringSubmatch(number)
	if m == nil {
		return "", false
	}
	return "+94" + m[1], true
}

// TrialAllows tells whether an SMS may go to a number: always when the project
// is not on trial, else when the number is one of its trial destinations.
func (p *Project) TrialAllows(number string) bool {
	if !p.Trial {
		return true
	}
	normal, ok := NormalNumber(number)
	return ok && slices.Contains(p.TrialDestinations, normal)
}

// SecretDigest is what is stored of a client secret.
type SecretDigest struct {
	// Digest is the SHA-256 of the secret's text.
	Digest [32]byte
	// Created is in UTC, to the second.
	Created time.Time
}

// Credential is one client ID with its live secrets.
type Credential struct {
	// ClientID names its project: svc_<project ID>_<8 characters>.
	ClientID    string
	Environment Environment
	// Active is false once the credential is revoked.
	Active bool
	// Secrets are the live ones, the oldest first: one, or two during a rotation.
	Secrets []SecretDigest
}

// Integration connects a project's environment to a vendor. There is at most
// one for each environment, kind and vendor.
type Integration struct {
	// ID is "<environment>/<kind>/<vendor>", unique in its project.
	ID          string
	Kind        Kind
	Environment Environment
	// Vendor is a name of the kind's vendor table.
	Vendor string
	Mode   Mode
	Active bool
	// Priority orders the active ones, the lowest first.
	Priority int
	// Settings are the vendor's own, without its secrets. Not to be changed by readers.
	Settings map[string]string
	// Updated is in UTC, to the second.
	Updated time.Time
}

// IntegrationID is the ID of the integration of these three.
func IntegrationID(env Environment, kind Kind, vendor string) string {
	return string(env) + "/" + string(kind) + "/" + vendor
}

// Record is all that is known of a project, read in one query. It is shared
// between requests and not to be changed by readers.
type Record struct {
	Project
	Credentials  []Credential
	Integrations []Integration
}

// Active gives the active integrations of a kind in an environment, by priority, then by vendor name.
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

// Integration finds one integration, active or not; nil when there is none.
func (r *Record) Integration(env Environment, kind Kind, vendor string) *Integration {
	for i := range r.Integrations {
		it := &r.Integrations[i]
		if it.Environment == env && it.Kind == kind && it.Vendor == vendor {
			return it
		}
	}
	return nil
}

// Credential finds a credential by its client ID, active or not; nil when there is none.
func (r *Record) Credential(clientID string) *Credential {
	for i := range r.Credentials {
		if r.Credentials[i].ClientID == clientID {
			return &r.Credentials[i]
		}
	}
	return nil
}
