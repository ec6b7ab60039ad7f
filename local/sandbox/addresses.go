package sandbox

import (
	"cmp"
	"net/netip"
	"strconv"
)

// flags are the kinds of network that an address belongs to.
type flags struct {
	vpn, proxy, tor, relay, hosting bool
	residential                     bool // the proxy is a residential one
}

// facts are what every IP vendor of the sandbox knows of an address.
type facts struct {
	flags
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
var flagged = map[string]flags{
	"45.83.0.1":  {vpn: true},
	"45.83.0.2":  {proxy: true},
	"45.83.0.3":  {tor: true},
	"45.83.0.4":  {relay: true},
	"45.83.0.5":  {hosting: true},
	"45.83.0.6":  {vpn: true, proxy: true, tor: true, relay: true, hosting: true},
	"45.83.0.12": {proxy: true, residential: true},
}

// keyed returns an IP vendor with one path. The key is a parameter of the query or of the path.
func keyed(name, parameter, key, pattern string, unknown response, serve lookUp) vendor {
	authorized := func(r *request) bool { return cmp.Or(r.PathValue(parameter), r.URL.Query().Get(parameter)) == key }
	return vendor{
		name: name, secrets: []string{parameter}, accepted: []string{key}, unknown: unknown,
		routes: []route{{pattern, serve.authorizedBy(authorized)}},
	}
}

// lookUp returns an IP vendor's responses about an address: Accepted with the facts, and the vendor's failures, which are
// CredentialsRefused, invalidAddress, Rejected, UnknownAddress and QuotaUsed.
type lookUp func(r *request, ip string, f facts) responses

// authorizedBy returns a route's function. The address is a parameter of the query or of the path.
func (l lookUp) authorizedBy(authorized func(*request) bool) func(*request) result {
	return func(r *request) result {
		ip := cmp.Or(r.PathValue("ip"), r.URL.Query().Get("ip"))
		addr, err := netip.ParseAddr(ip)
		f := ashburn
		if sriLankaTelecom.Contains(addr) {
			f = colombo
		}
		f.flags = flagged[ip]
		all := l(r, ip, f)
		return result{
			operation: "lookup", to: []string{ip}, responses: all,
			problems: []problem{{!authorized(r), all[CredentialsRefused]}, {err != nil, all[invalidAddress]}},
		}
	}
}
