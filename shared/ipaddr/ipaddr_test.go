package ipaddr

import (
	"net/netip"
	"testing"
)

// docs/decisions/look-ups.md#ip-addresses: netip.ParseAddr without zone; a v4-mapped v6 address is evaluated as v4.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":                               "192.0.2.1",
		"::ffff:192.0.2.1":                        "192.0.2.1",
		"::FFFF:C000:201":                         "192.0.2.1",
		"2001:DB8:0:0:0:0:0:1":                    "2001:db8::1",
		"2001:0db8:0000:0000:0000:0000:0000:0001": "2001:db8::1",
		"::":                     "::",
		"::1.2.3.4":              "::102:304",
		"0.0.0.0":                "0.0.0.0",
		"":                       "",
		" 192.0.2.1":             "",
		"192.0.2.1 ":             "",
		"192.0.2.1\n":            "",
		"192.0.2":                "",
		"192.0.2.256":            "",
		"192.0.2.01":             "",
		"0xC0.0.2.1":             "",
		"3221225985":             "",
		"192.0.2.1/24":           "",
		"192.0.2.1:80":           "",
		"[::1]":                  "",
		"fe80::1%eth0":           "",
		"::ffff:192.0.2.1%eth0":  "",
		"1::2::3":                "",
		"12345::":                "",
		"example.com":            "",
		"١٩٢.٠.٢.١":              "",
		"1:2:3:4:5:6:7":          "",
		"1:2:3:4:5:6:7:8:9":      "",
		"1:2:3:4:5:6:7:1.2.3.4":  "",
		"::ffff:192.0.2.1:12345": "",
	} {
		addr, ok := Parse(text)
		if got := addr.String(); ok != (want != "") || ok && got != want {
			t.Errorf("Parse(%q) = %s, %v; wants %q", text, got, ok, want)
		}
	}
}

func TestGlobal(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "112.134.0.1": true, "45.83.0.1": true, "223.255.255.255": true,
		"9.255.255.255": true, "11.0.0.0": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.255.255": true,
		"172.32.0.0": true,
		"192.0.1.0":  true, "192.167.255.255": true, "192.169.0.0": true, "198.17.255.255": true, "198.20.0.0": true,
		"192.0.0.9": true, "192.0.0.10": true, "192.0.0.11": false, "192.88.99.1": false,
		"10.0.0.1": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.1.1": false, "172.16.0.1": false,
		"172.31.255.255": false,
		"192.0.2.1":      false, "192.168.0.1": false, "198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false,
		"203.0.113.1": false,
		"224.0.0.1":   false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false, "0.0.0.0": false,
		"0.1.2.3":              false,
		"2606:4700:4700::1111": true, "2a00:1450::1": true, "2001:4860:4860::8888": true, "2001:1::1": true,
		"2001:1::4":   false,
		"2001:db8::1": false, "2001::1": false, "2002:102:304::1": false, "3fff::1": false, "3fff:1000::1": true,
		"::": false, "::1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,
		"64:ff9b:1::1": false,
		"100::1":       false, "4000::1": false, "fc00::1": false, "fd12::1": false, "fe80::1": false, "fec0::1": false,
		"ff02::1": false, "5f00::1": false,
	} {
		if got := Global(netip.MustParseAddr(text)); got != want {
			t.Errorf("Global(%s) = %v", text, got)
		}
	}
	if Global(netip.Addr{}) {
		t.Error("no address is global")
	}
}

// TestPublic checks that Public accepts hosts alone, without a zone (docs/decisions/look-ups.md#not-routable).
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

func FuzzParse(f *testing.F) {
	for _, text := range []string{"192.0.2.1", "::ffff:1.2.3.4", "fe80::1%a", "::ffff:127.0.0.1", "169.254.169.254", "fd00::1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, ok := Parse(text)
		if !ok {
			return
		}
		if Public(addr) && (!Global(addr) || !addr.IsGlobalUnicast() || addr.IsPrivate()) {
			t.Errorf("%s counts as public", addr)
		}
		if again, ok := Parse(addr.String()); !ok || again != addr || addr.Is4In6() || addr.Zone() != "" {
			t.Errorf("%q: %s is no canonical text", text, addr)
		}
	})
}
