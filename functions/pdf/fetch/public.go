package fetch

import "net/netip"

// globalV6 is what IANA has given out for the public network; all else of IPv6 is refused, so that forms yet to be
// invented are, too.
var globalV6 = netip.MustParsePrefix("2000::/3")

// reserved are the blocks that are not reached over the public network, or reach something else than they say
// (IANA special-purpose address registries, RFC 6890). Blocks outside 2000::/3 are not repeated here.
var reserved = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private use
	"100.64.0.0/10",   // shared address space of carriers
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link local, and the metadata service of clouds
	"172.16.0.0/12",   // private use
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4
	"192.168.0.0/16",  // private use
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
	"2001::/23",       // protocol assignments: Teredo, ORCHID, benchmarks
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4: carries any IPv4 address
	"3fff::/20",       // documentation
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// public tells whether an address is one of the public network, or of the networks that count as public in extra.
// A v4-mapped address is what it maps.
func public(a netip.Addr, extra []netip.Prefix) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	for _, network := range extra {
		if network.Contains(a) {
			return true
		}
	}
	if !a.IsValid() || (a.Is6() && !globalV6.Contains(a)) {
		return false
	}
	for _, network := range reserved {
		if network.Contains(a) {
			return false
		}
	}
	return true
}
