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

// reach is the reachability of the addresses of a block.
type reach int

const (
	none     reach = iota // not Globally Reachable, or N/A
	protocol              // Globally Reachable by a protocol: one of many hosts, another address, or none
	hosts                 // Globally Reachable, each address one host or network
)

// block is one row of IANA's registries.
type block struct {
	prefix netip.Prefix
	reach  reach
}

func reachable(prefix string) block   { return block{netip.MustParsePrefix(prefix), hosts} }
func byProtocol(prefix string) block  { return block{netip.MustParsePrefix(prefix), protocol} }
func unreachable(prefix string) block { return block{netip.MustParsePrefix(prefix), none} }

// blocks are all rows of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190), with their
// names and RFCs. The first group is from the IANA IPv4 Address Space Registry and the IANA Internet Protocol Version 6
// Address Space registry.
var blocks = []block{
	reachable("0.0.0.0/0"),     // unicast
	unreachable("224.0.0.0/4"), // Multicast, RFC 5771
	unreachable("::/0"),        // Reserved by IETF, RFC 4291
	reachable("2000::/3"),      // Global Unicast, RFC 4291

	// IPv4 Special-Purpose Address Registry
	unreachable("0.0.0.0/8"),          // "This network", RFC 791
	unreachable("0.0.0.0/32"),         // "This host on this network", RFC 1122
	unreachable("10.0.0.0/8"),         // Private-Use, RFC 1918
	unreachable("100.64.0.0/10"),      // Shared Address Space, RFC 6598
	unreachable("127.0.0.0/8"),        // Loopback, RFC 1122
	unreachable("169.254.0.0/16"),     // Link Local, RFC 3927
	unreachable("172.16.0.0/12"),      // Private-Use, RFC 1918
	unreachable("192.0.0.0/24"),       // IETF Protocol Assignments, RFC 6890
	unreachable("192.0.0.0/29"),       // IPv4 Service Continuity Prefix, RFC 7335
	unreachable("192.0.0.8/32"),       // IPv4 dummy address, RFC 7600
	byProtocol("192.0.0.9/32"),        // Port Control Protocol Anycast, RFC 7723
	byProtocol("192.0.0.10/32"),       // Traversal Using Relays around NAT Anycast, RFC 8155
	unreachable("192.0.0.170/32"),     // NAT64/DNS64 Discovery, RFC 8880
	unreachable("192.0.0.171/32"),     // NAT64/DNS64 Discovery, RFC 8880
	unreachable("192.0.2.0/24"),       // Documentation (TEST-NET-1), RFC 5737
	reachable("192.31.196.0/24"),      // AS112-v4, RFC 7535
	reachable("192.52.193.0/24"),      // AMT, RFC 7450
	unreachable("192.88.99.0/24"),     // Deprecated (6to4 Relay Anycast), RFC 7526; N/A
	unreachable("192.88.99.2/32"),     // 6a44-relay anycast address, RFC 6751
	unreachable("192.168.0.0/16"),     // Private-Use, RFC 1918
	reachable("192.175.48.0/24"),      // Direct Delegation AS112 Service, RFC 7534
	unreachable("198.18.0.0/15"),      // Benchmarking, RFC 2544
	unreachable("198.51.100.0/24"),    // Documentation (TEST-NET-2), RFC 5737
	unreachable("203.0.113.0/24"),     // Documentation (TEST-NET-3), RFC 5737
	unreachable("240.0.0.0/4"),        // Reserved, RFC 1112
	unreachable("255.255.255.255/32"), // Limited Broadcast, RFC 8190

	// IPv6 Special-Purpose Address Registry
	unreachable("::1/128"),         // Loopback Address, RFC 4291
	unreachable("::/128"),          // Unspecified Address, RFC 4291
	unreachable("::ffff:0:0/96"),   // IPv4-mapped Address, RFC 4291
	byProtocol("64:ff9b::/96"),     // IPv4-IPv6 Translat., RFC 6052
	unreachable("64:ff9b:1::/48"),  // IPv4-IPv6 Translat., RFC 8215
	unreachable("100::/64"),        // Discard-Only Address Block, RFC 6666
	unreachable("100:0:0:1::/64"),  // Dummy IPv6 Prefix, RFC 9780
	unreachable("2001::/23"),       // IETF Protocol Assignments, RFC 2928
	unreachable("2001::/32"),       // TEREDO, RFC 4380; N/A
	byProtocol("2001:1::1/128"),    // Port Control Protocol Anycast, RFC 7723
	byProtocol("2001:1::2/128"),    // Traversal Using Relays around NAT Anycast, RFC 8155
	byProtocol("2001:1::3/128"),    // DNS-SD Service Registration Protocol Anycast, RFC 9665
	unreachable("2001:2::/48"),     // Benchmarking, RFC 5180
	byProtocol("2001:3::/32"),      // AMT, RFC 7450
	byProtocol("2001:4:112::/48"),  // AS112-v6, RFC 7535
	unreachable("2001:10::/28"),    // Deprecated (previously ORCHID), RFC 4843; N/A
	byProtocol("2001:20::/28"),     // ORCHIDv2, RFC 7343
	byProtocol("2001:30::/28"),     // Drone Remote ID Protocol Entity Tags (DETs) Prefix, RFC 9374
	unreachable("2001:db8::/32"),   // Documentation, RFC 3849
	unreachable("2002::/16"),       // 6to4, RFC 3056; N/A
	reachable("2620:4f:8000::/48"), // Direct Delegation AS112 Service, RFC 7534
	unreachable("3fff::/20"),       // Documentation, RFC 9637
	unreachable("5f00::/16"),       // Segment Routing (SRv6) SIDs, RFC 9602
	unreachable("fc00::/7"),        // Unique-Local, RFC 4193
	unreachable("fe80::/10"),       // Link-Local Unicast, RFC 4291
}
