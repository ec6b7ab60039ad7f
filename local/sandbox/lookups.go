package sandbox

import "net/netip"

// facts are what every IP vendor of the sandbox knows of an address, for the templates of lookups.yaml.
type facts struct {
	flags
	IP                            string
	Country, Code, City, Timezone string
	Latitude, Longitude           float64
	Network                       string
	ASN                           int
}

// flags are the kinds of network that an address belongs to.
type flags struct {
	VPN, Proxy, Tor, Relay, Hosting bool
	Residential                     bool // the proxy is a residential one
}

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

var (
	colombo = facts{
		Country: "Sri Lanka", Code: "LK", City: "Colombo", Timezone: "Asia/Colombo",
		Latitude: 6.9271, Longitude: 79.8612, Network: "Sri Lanka Telecom", ASN: 9329,
	}
	ashburn = facts{
		Country: "United States", Code: "US", City: "Ashburn", Timezone: "America/New_York",
		Latitude: 39.0438, Longitude: -77.4874, Network: "Amazon.com, Inc.", ASN: 14618,
	}
	sriLankaTelecom = netip.MustParsePrefix("112.134.0.0/16")
)

// flagged are the addresses of networks that hide their users.
var flagged = map[string]flags{
	"45.83.0.1":  {VPN: true},
	"45.83.0.2":  {Proxy: true},
	"45.83.0.3":  {Tor: true},
	"45.83.0.4":  {Relay: true},
	"45.83.0.5":  {Hosting: true},
	"45.83.0.6":  {VPN: true, Proxy: true, Tor: true, Relay: true, Hosting: true},
	"45.83.0.12": {Proxy: true, Residential: true},
}

// IP returns the address of a look-up.
func (in *received) IP() string { return in.To[0] }

// Facts returns what the vendors know of the address.
func (in *received) Facts() facts {
	f := ashburn
	if addr, err := netip.ParseAddr(in.IP()); err == nil && sriLankaTelecom.Contains(addr) {
		f = colombo
	}
	f.IP, f.flags = in.IP(), flagged[in.IP()]
	return f
}
