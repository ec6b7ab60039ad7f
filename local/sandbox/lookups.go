package sandbox

import "svcapi/shared/testvalue"

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
