// Package ipaddr reads IP addresses and knows which of them the public
// internet routes.
package ipaddr

import "net/netip"

// Parse reads an IPv4 or IPv6 address in text form, without zone and white
// space. An IPv4 address mapped into IPv6 comes out as the IPv4 address.
func Parse(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// Global reports whether an address is globally routable unicast.
func Global(addr netip.Addr) bool { return find(addr.Unmap().WithZone("")).reach != nobody }

// Public reports whether an address is one host's on the public network. Unlike Global, Public refuses the addresses
// that stand for a protocol: anycast of relays, translators to IPv4, identifiers.
func Public(addr netip.Addr) bool { return addr.Zone() == "" && find(addr.Unmap()).reach == hosts }

// find returns the block that is the most specific for an address; the zero block where the address is none.
func find(addr netip.Addr) block {
	found := block{}
	for _, b := range blocks {
		if b.prefix.Contains(addr) && b.prefix.Bits() >= found.prefix.Bits() {
			found = b
		}
	}
	return found
}
