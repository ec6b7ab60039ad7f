package ipaddr

import (
	"net/netip"
	"testing"
)

// TestPublic checks that Public accepts the addresses of hosts alone, and no address with a zone.
func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "::ffff:1.1.1.1": true, "2606:4700:4700::1111": true,
		"10.0.0.1": false, "::ffff:10.0.0.1": false, "::1": false, "fe80::1": false,
		"192.0.0.9": false, "2001:1::1": false, // global, and a protocol's
		"2606:4700:4700::1111%eth0": false, "fe80::1%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) is %t, want %t", text, got, want)
		}
	}
}
