package sandbox

import (
	"net/netip"
	"strconv"
)

// facts are what every IP vendor of the sandbox knows of an address.
type facts struct {
	vpn, proxy, tor, relay, hosting bool
	residential                     bool // the proxy is a residential one

	country, code, city, timezone string
	latitude, longitude           float64
	network                       string
	asn                           int
}

// as returns the autonomous-system number as text.
func (f facts) as() string { return "AS" + strconv.Itoa(f.asn) }

// degrees formats a coordinate for the vendors that return text.
func degrees(f float64) string { return strconv.FormatFloat(f, 'f', 5, 64) }

var (
	colombo = facts{
		country: "Sri Lanka", code: "LK", city: "Colombo", timezone: "Asia/Colombo",
		latitude: 6.9271, longitude: 79.8612, network: "Sri Lanka Telecom", asn: 9329,
	}
	ashburn = facts{
		country: "United States", code: "US", city: "Ashburn", timezone: "America/New_York",
		latitude: 39.0438, longitude: -77.4874, network: "Amazon.com, Inc.", asn: 14618,
	}
	sriLankaTelecom = netip.MustParsePrefix("112.134.0.0/16")
)

// flagged are the addresses of networks that hide their users.
var flagged = map[string]facts{
	"45.83.0.1":  {vpn: true},
	"45.83.0.2":  {proxy: true},
	"45.83.0.3":  {tor: true},
	"45.83.0.4":  {relay: true},
	"45.83.0.5":  {hosting: true},
	"45.83.0.6":  {vpn: true, proxy: true, tor: true, relay: true, hosting: true},
	"45.83.0.12": {proxy: true, residential: true},
}

// lookUp returns the result for an address: its facts as found formats them, or one of the vendor's failures, which are
// CredentialsRefused, invalidAddress, Rejected, UnknownAddress and QuotaUsed.
func lookUp(ip string, authorized bool, failures responses, found func(facts) object) result {
	addr, err := netip.ParseAddr(ip)
	f := ashburn
	if sriLankaTelecom.Contains(addr) {
		f = colombo
	}
	flags := flagged[ip]
	f.vpn, f.proxy, f.tor, f.relay, f.hosting, f.residential = flags.vpn, flags.proxy, flags.tor, flags.relay, flags.hosting, flags.residential
	failures[Accepted] = success(found(f))
	return result{
		operation: "lookup", to: []string{ip}, responses: failures,
		problems: []problem{{!authorized, failures[CredentialsRefused]}, {err != nil, failures[invalidAddress]}},
	}
}
