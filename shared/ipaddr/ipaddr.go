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

// Global tells whether an address is globally routable unicast, by the block of
// the table that is the most specific for it.
func Global(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	found := block{}
	for _, b := range blocks {
		if b.prefix.Contains(addr) && b.prefix.Bits() >= found.prefix.Bits() {
			found = b
		}
	}
	return found.global
}
