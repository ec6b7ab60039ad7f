package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"svcapi/shared/testvalue"
)

// facts are what every IP vendor of the sandbox knows of an address, for the templates of lookups.yaml.
type facts struct {
	flags
	testvalue.Place
	IP string
}

// flags are the kinds of network that an address belongs to.
type flags struct{ testvalue.Flags }

// Anonymous reports whether the network hides its users.
func (f flags) Anonymous() bool { return f.VPN || f.Proxy || f.Tor || f.Relay }

// Anonymizer returns what MaxMind reports of the flags. The vendor omits false members; the feed alone knows
// residential proxies.
func (f flags) Anonymizer() map[string]any {
	public := f.Proxy && !f.Residential
	list := map[string]any{}
	for name, is := range map[string]bool{
		"is_anonymous": f.VPN || public || f.Tor, "is_anonymous_vpn": f.VPN, "is_public_proxy": public,
		"is_tor_exit_node": f.Tor, "is_hosting_provider": f.Hosting,
	} {
		if is {
			list[name] = true
		}
	}
	if f.Residential {
		list["residential"] = map[string]any{"confidence": 80, "network_last_seen": "2026-01-01", "provider_name": "Example"}
	}
	return list
}

// IP returns the address of a look-up.
func (in *received) IP() string { return in.To[0] }

// Facts returns what the vendors know of the address.
func (in *received) Facts() facts {
	return facts{flags{testvalue.Of(in.IP()).Flags}, testvalue.PlaceOf(in.IP()), in.IP()}
}

// Rates returns the table that the sources of rates share: the units for 1 USD, with the digits that a source sends.
func Rates() (rates map[string]json.Number) {
	text, err := files.ReadFile("usd.json")
	if err = errors.Join(err, json.Unmarshal(text, &rates)); err != nil {
		panic(err) // the file is a part of the program
	}
	return rates
}

// ratesWith returns the table with a source's additional rates, each a currency and its rate.
func ratesWith(additional ...string) map[string]json.Number {
	rates := Rates()
	for pair := range slices.Chunk(additional, 2) {
		rates[pair[0]] = json.Number(pair[1])
	}
	return rates
}

// workingDays returns the working days among a day and the calendar days before it, the newest first.
func workingDays(until time.Time, before int) []string {
	var days []string
	for n := range before + 1 {
		day := until.AddDate(0, 0, -n)
		if w := day.Weekday(); w != time.Saturday && w != time.Sunday {
			days = append(days, day.Format(time.DateOnly))
		}
	}
	return days
}

// bankRow is a currency in one of the central bank's forms: indicative rates in LKR, or those of transfers.
type bankRow struct{ Code, Name, First, Second string }

// Choice returns the value of the currency's box.
func (r bankRow) Choice() string { return r.Code + "~" + r.Name }

// Transfers reports whether the path names the form of transfers.
func (in *received) Transfers() bool { return strings.Contains(in.URL.Path, "/exratestt/") }

// Currencies returns the currencies of the form that the path names.
func (in *received) Currencies() []bankRow {
	return in.document.Forms[path.Base(path.Dir(in.URL.Path))]
}

// Chosen returns the currencies whose boxes are ticked.
func (in *received) Chosen() []bankRow {
	return slices.DeleteFunc(slices.Clone(in.Currencies()),
		func(r bankRow) bool { return !slices.Contains(in.To, r.Choice()) })
}

// Days returns the working days from one date of the bank's form to the other, the newest first.
func (in *received) Days() []string {
	from, _ := time.Parse(time.DateOnly, in.Get("txtStart"))
	to, _ := time.Parse(time.DateOnly, in.Get("txtEnd"))
	return workingDays(to, int(to.Sub(from).Hours()/24))
}

// Error codes of AWS.
const awsUnknownClient, awsInvalidSignature = "UnrecognizedClientException", "InvalidSignatureException"

var awsSignature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/sms-voice/aws4_request, ` +
	`SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$`)

// awsSignatureError signs the request again and returns AWS's error code for its signature, "" for a valid one.
func awsSignatureError(r *received) string {
	m := awsSignature.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return "IncompleteSignatureException"
	}
	key, region := m[1], m[2]
	secret := r.document.Account["secret_access_key"]
	if strings.HasPrefix(key, "LOCAL") { // a key that the Lambda host gives a function
		secret = "local"
	} else if key != r.document.Account["access_key_id"] {
		return awsUnknownClient
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return awsInvalidSignature
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return awsInvalidSignature
	}
	again.ContentLength = r.ContentLength
	for name := range strings.SplitSeq(m[3], ";") {
		if name != "host" && name != "content-length" { // the signer reads these two from the request
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: secret,
		SessionToken: r.Header.Get("X-Amz-Security-Token")}
	sum := sha256.Sum256(r.body)
	err = v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), "sms-voice", region, at)
	if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return awsInvalidSignature
	}
	return ""
}
