package fetch

import (
	"net/netip"
	"slices"

	"svcapi/shared/ipaddr"
)

// public reports whether an address is one host's on the public network, or within the networks that count as public
// in extra. A v4-mapped address is what it maps.
func public(a netip.Addr, extra []netip.Prefix) bool {
	within := func(network netip.Prefix) bool { return network.Contains(a.Unmap()) }
	return ipaddr.Public(a) || a.Zone() == "" && slices.ContainsFunc(extra, within)
}
