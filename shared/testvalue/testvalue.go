// Package testvalue holds the phone numbers and IP addresses with a meaning. The vendor "test" and the sandbox of the
// local stack respond to them, and README.md and the page at /docs list them
// (docs/decisions/extensions.md#test-vendor).
package testvalue

import "net/netip"

// Outcome is how a vendor handles the request for a value.
type Outcome string

// The outcomes.
const (
	Accepted           Outcome = "accepted"
	Rejected           Outcome = "rejected"
	CredentialsRefused Outcome = "credentials_refused"
	UnknownAddress     Outcome = "unknown_address"
	QuotaUsed          Outcome = "quota_used"
	Unparseable        Outcome = "unparseable" // status 200 with a page
	Hang               Outcome = "hang"        // reads the request and never responds
	ServerError        Outcome = "server_error"
	Slow               Outcome = "slow" // accepted after 2 s
)

// Value is a number or an address with a meaning. The zero Value is any other one, which a vendor accepts.
type Value struct {
	Number  string // 07XXXXXXXX; empty: the value is an address
	Address string // IPv4
	Meaning string // what the vendor does, for people
	Outcome Outcome
	Status  int // of the response to POST /sms/send or /security/vpn-shield
	Located int // of the response to POST /location/lookup with the address
	Flags
}

// Flags are the kinds of network that an address belongs to.
type Flags struct {
	VPN, Proxy, Tor, Relay, Hosting bool
	Residential                     bool // the proxy is a residential one
}

// All returns the values in the order in which people read them.
func All() []Value {
	return []Value{
		{Number: "0770000001", Meaning: "rejects the message", Outcome: Rejected, Status: 502},
		{Number: "0770000002", Meaning: "refuses your vendor account's credentials",
			Outcome: CredentialsRefused, Status: 502},
		{Number: "0770000003", Meaning: "returns nonsense: the SMS may have been sent, and is charged",
			Outcome: Unparseable, Status: 502},
		{Number: "0770000004", Meaning: "never responds: the same", Outcome: Hang, Status: 503},
		{Number: "0770000005", Meaning: "responds with HTTP 500: the same", Outcome: ServerError, Status: 502},
		{Number: "0770000006", Meaning: "accepts after two seconds", Outcome: Slow, Status: 200},
		known("45.83.0.1", "a VPN", Flags{VPN: true}),
		known("45.83.0.2", "a proxy", Flags{Proxy: true}),
		known("45.83.0.12", "a residential proxy", Flags{Proxy: true, Residential: true}),
		known("45.83.0.3", "a Tor exit", Flags{Tor: true}),
		known("45.83.0.4", "a relay", Flags{Relay: true}),
		known("45.83.0.5", "a host", Flags{Hosting: true}),
		known("45.83.0.6", "all of them", Flags{VPN: true, Proxy: true, Tor: true, Relay: true, Hosting: true}),
		{Address: "45.83.0.7", Meaning: "does not know the address", Outcome: UnknownAddress, Status: 503, Located: 200},
		failing("45.83.0.8", "has used up its quota", QuotaUsed),
		failing("45.83.0.9", "never responds", Hang),
		failing("45.83.0.10", "returns nonsense", Unparseable),
		failing("45.83.0.11", "responds with HTTP 500", ServerError),
	}
}

func known(address, network string, flags Flags) Value {
	return Value{Address: address, Meaning: "knows " + network, Outcome: Accepted, Status: 200, Located: 200, Flags: flags}
}

func failing(address, meaning string, outcome Outcome) Value {
	return Value{Address: address, Meaning: meaning, Outcome: outcome, Status: 503, Located: 500}
}

// Of returns the value of a number (07XXXXXXXX) or an address.
func Of(text string) Value {
	for _, v := range All() {
		if text != "" && (v.Number == text || v.Address == text) {
			return v
		}
	}
	return Value{Outcome: Accepted}
}

// Place is the network of an address and where it is.
type Place struct {
	Country, Code, City, Timezone string
	Latitude, Longitude           float64
	Network                       string
	ASN                           int
}

var (
	colombo = Place{
		Country: "Sri Lanka", Code: "LK", City: "Colombo", Timezone: "Asia/Colombo",
		Latitude: 6.9271, Longitude: 79.8612, Network: "Sri Lanka Telecom", ASN: 9329,
	}
	ashburn = Place{
		Country: "United States", Code: "US", City: "Ashburn", Timezone: "America/New_York",
		Latitude: 39.0438, Longitude: -77.4874, Network: "Amazon.com, Inc.", ASN: 14618,
	}
	sriLankaTelecom = netip.PrefixFrom(netip.AddrFrom4([4]byte{112, 134}), 16)
)

// PlaceOf returns the place of any address: Colombo for 112.134.0.0/16, and Ashburn for all others.
func PlaceOf(address string) Place {
	if addr, err := netip.ParseAddr(address); err == nil && sriLankaTelecom.Contains(addr) {
		return colombo
	}
	return ashburn
}
