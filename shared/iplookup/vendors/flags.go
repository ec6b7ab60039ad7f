package vendors

import "strings"

// Mark is what a vendor's flag sets in openapi.yaml#VpnResult.
type Mark string

// The marks. Unnamed sets is_proxy where no flag names VPN, proxy, Tor or relay; UnnamedOrHosting does so where none
// names hosting either, because the vendor's flag includes hosting.
const (
	VPN              Mark = "is_vpn"
	Proxy            Mark = "is_proxy"
	Tor              Mark = "is_tor"
	Relay            Mark = "is_relay"
	Hosting          Mark = "is_hosting"
	Unnamed          Mark = "is_proxy, if no other kind"
	UnnamedOrHosting Mark = "is_proxy, if no other kind and no hosting"
)

// marks are all marks.
var marks = []Mark{VPN, Proxy, Tor, Relay, Hosting, Unnamed, UnnamedOrHosting}

// Flags are the documented flags of a vendor's response about anonymity, not about abuse, by what they set: paths, each
// with "=" and the text that sets the mark where the flag is no boolean.
type Flags map[Mark][]string

// flagged returns the risk that the flags of an object set. An absent object has no flags. A flag that is absent or
// null is not set, and a flag that is an object is set where the object has members.
func (c Caller) flagged(flags Flags, object document) (Risk, error) {
	set := map[Mark]bool{}
	for _, mark := range marks {
		for _, flag := range flags[mark] {
			path, text, _ := strings.Cut(flag, "=")
			switch v := object.at(path).(type) {
			case nil:
			case bool:
				set[mark] = set[mark] || v
			case map[string]any:
				set[mark] = set[mark] || len(v) > 0
			case string:
				if text == "" {
					return Risk{}, c.fail(unusable, "the flag "+path+" is "+v)
				}
				set[mark] = set[mark] || v == text
			default:
				return Risk{}, c.fail(unusable, "the flag "+path+" is no boolean")
			}
		}
	}
	named := set[VPN] || set[Proxy] || set[Tor] || set[Relay]
	proxy := set[Proxy] || !named && (set[Unnamed] || set[UnnamedOrHosting] && !set[Hosting])
	return Risk{VPN: set[VPN], Proxy: proxy, Tor: set[Tor], Relay: set[Relay], Hosting: set[Hosting]}, nil
}
