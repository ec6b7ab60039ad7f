package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
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

// usdRates is the table that the sources of rates share: the units for 1 USD, with the digits that a source sends.
var usdRates = map[string]json.Number{
	"AED": "3.6725", "AUD": "1.527319", "BDT": "121.745", "BHD": "0.376958", "BRL": "5.34127", "CAD": "1.403155",
	"CHF": "0.805432", "CNY": "7.11385", "CZK": "20.9642", "DKK": "6.45417", "EGP": "47.5135", "EUR": "0.864128",
	"GBP": "0.761934", "HKD": "7.7789", "HUF": "331.745", "IDR": "16698", "ILS": "3.26105", "INR": "88.7254",
	"JPY": "154.8315", "KES": "129.25", "KRW": "1463.91", "KWD": "0.306905", "LKR": "304.718462", "MUR": "45.92",
	"MVR": "15.405", "MXN": "18.3716", "MYR": "4.1485", "NOK": "10.1153", "NPR": "141.96064", "NZD": "1.774235",
	"OMR": "0.384503", "PHP": "58.845", "PKR": "281.117325", "PLN": "3.66104", "QAR": "3.640838", "RUB": "80.9515",
	"SAR": "3.7502", "SEK": "9.48305", "SGD": "1.302985", "THB": "32.4125", "TRY": "42.3011", "TWD": "31.074",
	"USD": "1", "VND": "26345.75", "XAU": "0.000247935401", "ZAR": "17.1285",
}

// Rates returns the table that the sources of rates share.
func Rates() map[string]json.Number { return maps.Clone(usdRates) }

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

// cbslCurrency is a currency of the central bank's pages: its names in the two forms, and its rates in LKR, which are
// near the other sources' rates but not the same.
type cbslCurrency struct {
	code, indicative, transfer string // transfer is empty for a currency that the form lacks
	central, buy, sell         string
}

var cbslCurrencies = []cbslCurrency{
	{"AUD", "Australian Dollar", "Australian Dollar", "199.4406", "195.3911", "203.9082"},
	{"BHD", "Bahrain Dinar", "", "808.3340", "", ""},
	{"CAD", "Canadian Dollar", "Canadian Dollar", "217.1190", "213.6417", "221.0338"},
	{"CNY", "Chinese Yuan (Renminbi)", "Renminbi", "42.8293", "41.9650", "43.8127"},
	{"EUR", "Euro", "Euro", "352.6013", "346.9204", "358.7335"},
	{"INR", "Indian Rupee", "", "3.4349", "", ""},
	{"JPY", "Japanese Yen", "Yen", "1.9682", "1.9318", "2.0071"},
	{"MYR", "Malaysia  Ringgit", "", "73.4503", "", ""},
	{"SGD", "Singapore Dollar", "Singapore Dollar", "233.8612", "230.0915", "237.7240"},
	{"GBP", "Sterling Pound", "British Pound", "399.8911", "394.0172", "406.3318"},
	{"CHF", "Swiss Franc", "Swiss Franc", "378.3100", "371.0226", "386.1904"},
	{"AED", "UAE  Dirham", "", "82.9711", "", ""},
	{"USD", "US Dollar", "United States Dollar", "304.6531", "301.2175", "308.7702"},
}

// bankRow is a currency in one of the bank's forms: indicative rates, or those of transfers.
type bankRow struct {
	Code, Name, First, Second string
	Transfer                  bool
}

// Choice returns the value of the currency's box.
func (r bankRow) Choice() string { return r.Code + "~" + r.Name }

// Currencies returns the currencies of the form that the path names.
func (in *received) Currencies() (rows []bankRow) {
	transfer := strings.Contains(in.URL.Path, "/exratestt/")
	for _, c := range cbslCurrencies {
		row := bankRow{c.code, c.indicative, c.central, "0.0033", false}
		if transfer {
			row = bankRow{c.code, c.transfer, c.buy, c.sell, true}
		}
		if row.Name != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// Chosen returns the currencies whose boxes are ticked.
func (in *received) Chosen() []bankRow {
	return slices.DeleteFunc(in.Currencies(), func(r bankRow) bool { return !slices.Contains(in.To, r.Choice()) })
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

// awsSecret returns the secret key of a project's access key, or of a key that the Lambda host gives a function.
func awsSecret(accessKeyID string) (string, bool) {
	if strings.HasPrefix(accessKeyID, "LOCAL") {
		return "local", true
	}
	return Accounts["aws"]["secret_access_key"], accessKeyID == Accounts["aws"]["access_key_id"]
}

// awsSignatureError signs the request again and returns AWS's error code for its signature, "" for a valid one.
func awsSignatureError(r *received) string {
	m := awsSignature.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return "IncompleteSignatureException"
	}
	key, region := m[1], m[2]
	secret, ok := awsSecret(key)
	if !ok {
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
