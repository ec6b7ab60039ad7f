package fetch

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A parsed list of hosts contains all names and only names.
func FuzzHosts(f *testing.F) {
	for _, text := range []string{"", ",", "a.example", " A.example ,b.example", "a.example,", "https://a", "*", "a b", "a@b", "[::1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := ParseHosts(text)
		if err != nil {
			return
		}
		if len(hosts) != strings.Count(text, ",")+1 && text != "" || (hosts == nil) != (text == "") {
			t.Errorf("%q: %q", text, hosts)
		}
		again, err := ParseHosts(strings.Join(hosts, ","))
		if err != nil || !slices.Equal(again, hosts) || slices.ContainsFunc(hosts, func(h string) bool { return h == "" || strings.ContainsAny(h, "/:*@ ") }) {
			t.Errorf("%q: %q, %q, %v", text, hosts, again, err)
		}
	})
}

// An address is public in all of its forms or in none, and no address of this machine or its network is public.
func FuzzPublic(f *testing.F) {
	for _, text := range []string{"8.8.8.8", "127.0.0.1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1", "2001:db8::1", "fd00::1", "169.254.169.254", "2606:4700::1", "100.64.0.1"} {
		addr := netip.MustParseAddr(text)
		raw := addr.As16()
		f.Add(raw[:])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		addr, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		public := New(Options{}).public
		is := public(addr)
		if is != public(addr.Unmap()) || is && public(addr.WithZone("eth0")) && addr.Is6() {
			t.Errorf("%s: %v, but not in another form", addr, is)
		}
		plain := addr.Unmap()
		if is && (plain.IsPrivate() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified() || plain.IsInterfaceLocalMulticast()) {
			t.Errorf("%s counts as public", addr)
		}
	})
}
