package vendors

import (
	"context"
	"net/netip"
	"net/url"

	"svcapi/shared/pattern"
	"svcapi/shared/upstream"
)

// ipQualityScoreSpec is IPQualityScore's proxy detection API (fixtures and client of the Ruby gem geocoder).
var ipQualityScoreSpec = upstream.Spec{
	Name: "ipqualityscore", Title: "IPQualityScore", Endpoint: "https://www.ipqualityscore.com",
	Secrets: []upstream.Field{{Name: "api_key", Description: "private key", Required: true}},
}

var ipQualityScoreFields = fields{countryCode: "country_code", city: "city", asn: "ASN",
	network: []string{"organization", "ISP"}}

// ipQualityScoreFlags are the flags of the recorded responses of geocoder, where "proxy" is also true for a VPN and a
// Tor exit. The vendor has no flag for relays. A field of a higher plan may hold a text about the plan.
var ipQualityScoreFlags = Flags{
	VPN: {"vpn", "active_vpn=true"}, Proxy: {"proxy"}, Tor: {"tor", "active_tor=true"},
	Hosting: {"connection_type=Data Center"},
}

// ipQualityScorePhrases are those of a failure, in the order in which they are looked for.
var ipQualityScorePhrases = []phrase{
	{pattern.New(`(?i)insufficient credits|exceeded your request quota`), quota},
	{pattern.New(`(?i)\b(invalid|unauthorized)\b.*\bkey\b`), credentials},
}

// ipQualityScore makes a look-up at IPQualityScore. The body decides, because failures have HTTP status 200. The
// strictness is the least, and public access points are not proxies, as the vendor recommends for a start.
func ipQualityScore(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
	path := "/api/json/ip/" + url.PathEscape(c.Account.Secrets["api_key"]) + "/" + url.PathEscape(addr.String())
	query := url.Values{"strictness": {"0"}, "allow_public_access_points": {"true"}}
	if d, err = c.getJSON(ctx, path, query, nil, nil); err != nil {
		return nil, nil, err
	}
	switch success, known := d.flag("success"); {
	case !known:
		return nil, nil, c.fail(unusable, "response without success")
	case !success:
		return nil, nil, c.byMessage(string(d.text("message")), ipQualityScorePhrases)
	}
	for _, flag := range []string{"vpn", "proxy", "tor"} {
		if _, known := d.flag(flag); !known {
			return nil, nil, c.fail(unusable, "response without "+flag)
		}
	}
	return d, d, nil
}
