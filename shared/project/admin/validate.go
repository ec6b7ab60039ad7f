package admin

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/dynamo"
	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

// The limits of a record's fields, so that one small query reads a project.
const (
	maxName         = 100
	maxDestinations = 100
	MaxRequests     = 10_000_000 // in a window
	maxWindow       = project.Day
	MaxPriority     = 1000 // of an integration
	maxSettings     = 32
	maxSetting      = 1024
	longestName     = 50 // of a vendor or a setting, in bytes
	maxRecipients   = 5  // windows of messages to one number
	maxMessages     = 1_000_000
	maxDaily        = 1_000_000_000_000_000

	// leastRecipientWindow bounds the counters of a number's item, one for each window of a day: 1,440 are some 20 KB. A
	// write costs by the size of its item, which must not reach 400 KB.
	leastRecipientWindow = time.Minute
	// hashKeySize is the length of a hashKey, that of a SHA-256 (RFC 2104, section 3).
	hashKeySize = 32
)

var (
	vendorPattern  = pattern.New(`^[A-Za-z0-9_-]+$`)
	settingPattern = pattern.New(`^[a-z0-9_]+$`)
)

// Environments returns the environments in the order in which people read them.
func Environments() []project.Environment {
	return []project.Environment{project.Development, project.Production}
}

// Kinds returns every kind of integration.
func Kinds() []project.Kind {
	return []project.Kind{project.SMS, project.Security, project.Location, project.Barcode, project.PDF, project.Currency}
}

// Integration returns one integration of a record, active or not, or nil where the project has none such.
func Integration(r *project.Record, env project.Environment, kind project.Kind, vendor string) *project.Integration {
	for i := range r.Integrations {
		it := &r.Integrations[i]
		if it.Environment == env && it.Kind == kind && it.Vendor == vendor {
			return it
		}
	}
	return nil
}

// validated validates a project except for its ID, and returns the project with its destinations in normal format.
func validated(p project.Project) (project.Project, error) {
	switch {
	case p.Name == "" || len(p.Name) > maxName || strings.ContainsFunc(p.Name, unprintable):
		return project.Project{}, invalid("project name %q (1 to %d bytes, printable)", p.Name, maxName)
	case len(p.TrialDestinations) > maxDestinations:
		return project.Project{}, invalid("%d trial destinations (at most %d)", len(p.TrialDestinations), maxDestinations)
	}
	if err := cmp.Or(ValidateRate(p.Limit), ValidateLimits(p.Limits), validatePrices(p.Prices)); err != nil {
		return project.Project{}, err
	}
	p.Limits.Recipients = slices.SortedFunc(slices.Values(p.Limits.Recipients),
		func(a, b project.RecipientLimit) int { return cmp.Compare(a.Window, b.Window) })
	normal := make([]string, 0, len(p.TrialDestinations))
	for _, d := range p.TrialDestinations {
		n, ok := project.NormalNumber(d)
		if !ok {
			return project.Project{}, invalid("trial destination %q (07XXXXXXXX or +947XXXXXXXX)", d)
		}
		if !slices.Contains(normal, n) {
			normal = append(normal, n)
		}
	}
	p.TrialDestinations = normal
	return p, nil
}

// validatePrices returns the reason why no project can have the prices, an ErrInvalid.
func validatePrices(prices map[string]int64) error {
	for name, credits := range prices {
		known := slices.ContainsFunc(wallet.PriceList(), func(p wallet.Price) bool { return p.Name == name })
		if !known || credits < 0 || credits > wallet.MaxPrice {
			return invalid("price of %s of %d credits (0 to %d)", name, credits, int64(wallet.MaxPrice))
		}
	}
	return nil
}

// ValidateRate returns the reason why no project can have the limit, an ErrInvalid.
func ValidateRate(l project.RateLimit) error {
	switch {
	case l.Requests < 1 || l.Requests > MaxRequests:
		return invalid("limit of %d requests (1 to %d)", l.Requests, MaxRequests)
	case l.Window < time.Second || l.Window > maxWindow || l.Window%time.Second != 0:
		return invalid("window of %s (whole seconds, 1s to %s)", l.Window, maxWindow)
	}
	return nil
}

// ValidateLimits returns the reason why no project can have the limits, an ErrInvalid.
func ValidateLimits(l project.Limits) error {
	for _, most := range []int64{l.DailyCredits, l.DailyUnits} {
		if most < 0 || most > maxDaily {
			return invalid("%d a day (1 to %d, or none)", most, int64(maxDaily))
		}
	}
	if len(l.Recipients) > maxRecipients {
		return invalid("%d windows of messages to one number (at most %d)", len(l.Recipients), maxRecipients)
	}
	windows := map[time.Duration]bool{}
	for _, r := range l.Recipients {
		switch {
		case r.Messages < 1 || r.Messages > maxMessages:
			return invalid("limit of %d messages to one number (1 to %d)", r.Messages, maxMessages)
		case r.Window < leastRecipientWindow || r.Window%time.Second != 0 || project.Day%r.Window != 0:
			return invalid("window of %s (at least %s, in whole seconds that divide 24h, such as 10m, 1h or 24h)",
				r.Window, leastRecipientWindow)
		case windows[r.Window]:
			return invalid("two limits for a window of %s", r.Window)
		}
		windows[r.Window] = true
	}
	return nil
}

// unprintable reports whether a text for people may not hold the rune; invalid UTF-8 reads as U+FFFD.
func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

func validateIntegration(i *project.Integration) error {
	switch {
	case !slices.Contains(Environments(), i.Environment):
		return invalid("environment %q", i.Environment)
	case !slices.Contains(Kinds(), i.Kind):
		return invalid("kind %q", i.Kind)
	case i.Mode != project.Managed && i.Mode != project.BYOK:
		return invalid("mode %q", i.Mode)
	case len(i.Vendor) > longestName || !vendorPattern().MatchString(i.Vendor):
		return invalid("vendor %q", i.Vendor)
	case i.Vendor == project.TestVendor && i.Environment != project.Development:
		return invalid("vendor %s in %s (it exists only in development)", i.Vendor, i.Environment)
	case i.Priority < 0 || i.Priority > MaxPriority:
		return invalid("priority %d (0 to %d)", i.Priority, MaxPriority)
	case len(i.Settings) > maxSettings:
		return invalid("%d settings (at most %d)", len(i.Settings), maxSettings)
	}
	for name, value := range i.Settings {
		if len(name) > longestName || !settingPattern().MatchString(name) || len(value) > maxSetting {
			return invalid("setting %q (a name of a-z, 0-9 and _, a value of at most %d bytes)", name, maxSetting)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrInvalid)...)
}

// now returns the current time as it is stored: in UTC, to the second.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

type item = dynamo.Item

func projectItem(p *project.Project) item {
	it := encode(p.Fields(), p.ID, project.SortProject)
	it["version"] = dynamo.Number(p.Version)
	return it
}

func credentialItem(projectID string, c *project.Credential) item {
	return encode(c.Fields(), projectID, project.SortCredential+c.ClientID)
}

func integrationItem(projectID string, i *project.Integration) item {
	return encode(i.Fields(), projectID,
		project.SortIntegration+string(i.Environment)+"#"+string(i.Kind)+"#"+i.Vendor)
}

// format returns the options of the JSON objects, which project.Decode reads. A duration is a number of seconds.
var format = sync.OnceValue(func() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true),
		json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) {
			return strconv.AppendInt(nil, int64(d/time.Second), 10), nil
		})))
})

func encode(f project.Fields, pk, sk string) item {
	text, err := json.Marshal(f, format())
	if err != nil {
		panic(fmt.Errorf("JSON of a project's item: %w", err)) // each field has a JSON form
	}
	return item{"pk": dynamo.Text(pk), "sk": dynamo.Text(sk), "v": dynamo.Text(string(text))}
}

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
