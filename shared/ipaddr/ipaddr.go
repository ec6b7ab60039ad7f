// Package ipaddr parses IP addresses and classifies them by the special-purpose registries of IANA.
package ipaddr

import (
	_ "embed" // blocks.txt
	"net/netip"
	"strings"
	"sync"
)

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
	for _, b := range blocks() {
		if b.prefix.Contains(addr) && b.prefix.Bits() >= found.prefix.Bits() {
			found = b
		}
	}
	return found
}

// reach is the reachability of the addresses of a block.
type reach int

// The reaches of blocks.txt, whose comments explain them.
const (
	none reach = iota
	protocol
	hosts
)

// block is one row of IANA's registries.
type block struct {
	prefix netip.Prefix
	reach  reach
}

//go:embed blocks.txt
var table string

// blocks returns the rows of blocks.txt. The first call reads the text.
var blocks = sync.OnceValue(func() (all []block) {
	reaches := map[string]reach{"none": none, "protocol": protocol, "hosts": hosts}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "#" {
			all = append(all, block{netip.MustParsePrefix(fields[0]), reaches[fields[1]]})
		}
	}
	return all
})
