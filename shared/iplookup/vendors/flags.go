package vendors

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

// Flag is a documented flag of a vendor's response about anonymity, not about abuse: its path, and the text that sets
// the mark where the flag is no boolean.
type Flag struct {
	Path string
	Sets Mark
	Text string
}

// flagged returns the risk that the flags of an object set. An absent object has no flags. A flag that is absent or
// null is not set, and a flag that is an object is set where the object has members.
func (c Caller) flagged(table []Flag, object document) (Risk, error) {
	marks := map[Mark]bool{}
	for _, f := range table {
		switch v := object.at(f.Path).(type) {
		case nil:
		case bool:
			marks[f.Sets] = marks[f.Sets] || v
		case map[string]any:
			marks[f.Sets] = marks[f.Sets] || len(v) > 0
		case string:
			if f.Text == "" {
				return Risk{}, c.fail(unusable, "the flag "+f.Path+" is "+v)
			}
			marks[f.Sets] = marks[f.Sets] || v == f.Text
		default:
			return Risk{}, c.fail(unusable, "the flag "+f.Path+" is no boolean")
		}
	}
	named := marks[VPN] || marks[Proxy] || marks[Tor] || marks[Relay]
	proxy := marks[Proxy] || !named && (marks[Unnamed] || marks[UnnamedOrHosting] && !marks[Hosting])
	return Risk{VPN: marks[VPN], Proxy: proxy, Tor: marks[Tor], Relay: marks[Relay], Hosting: marks[Hosting]}, nil
}
