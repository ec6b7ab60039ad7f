// Package ipaddr parses IP addresses and classifies them by the special-purpose registries of IANA.
package ipaddr

import "net/netip"

// Parse parses an IPv4 or IPv6 address without a zone. Parse converts an IPv4-mapped IPv6 address to the IPv4 address.
func Parse(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// Global reports whether an address is globally routable unicast.
func Global(addr netip.Addr) bool { return find(addr.Unmap().WithZone("")).reach != none }

// Public reports whether an address belongs to one host of the public network. Unlike Global, Public refuses the
// addresses of a protocol: anycast of relays, translators to IPv4, identifiers.
func Public(addr netip.Addr) bool { return addr.Zone() == "" && find(addr.Unmap()).reach == hosts }

// find returns the most specific block of an address, or the zero block for the zero address.
func find(addr netip.Addr) block {
	found := block{}
	for _, b := range blocks {
		if b.prefix.Contains(addr) && b.prefix.Bits() >= found.prefix.Bits() {
			found = b
		}
	}
	return found
}
