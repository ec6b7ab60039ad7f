package vendors

import (
	"cmp"
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

// ipQualityScoreResponse is the used part of a response.
type ipQualityScoreResponse struct {
	Success      *bool `json:"success"`
	Message      text  `json:"message"`
	VPN          *bool `json:"vpn"`
	Proxy        *bool `json:"proxy"`
	Tor          *bool `json:"tor"`
	CountryCode  text  `json:"country_code"`
	City         text  `json:"city"`
	ASN          text  `json:"ASN"`
	ISP          text  `json:"ISP"`
	Organization text  `json:"organization"`
}

// ipQualityScoreFlags are the flags of the recorded responses of geocoder, where "proxy" is also true for a VPN and a Tor
// exit. The vendor has no flag for relays. A field of a higher plan may hold a text about the plan.
var ipQualityScoreFlags = []Flag{
	{Path: "vpn", Sets: VPN},
	{Path: "proxy", Sets: Proxy},
	{Path: "tor", Sets: Tor},
	{Path: "active_vpn", Sets: VPN, Text: "true"},
	{Path: "active_tor", Sets: Tor, Text: "true"},
	{Path: "connection_type", Sets: Hosting, Text: "Data Center"},
	{Path: "is_crawler", Sets: Ignored},
	{Path: "mobile", Sets: Ignored},
	{Path: "recent_abuse", Sets: Ignored},
	{Path: "bot_status", Sets: Ignored},
}

// ipQualityScorePhrases are those of a failure, in the order in which they are looked for.
var ipQualityScorePhrases = []phrase{
	{pattern.New(`(?i)insufficient credits|exceeded your request quota`), quota},
	{pattern.New(`(?i)\b(invalid|unauthorized)\b.*\bkey\b`), credentials},
}

// ipQualityScore makes a look-up at IPQualityScore. The body decides, because failures have HTTP status 200. The strictness is the least, and
// public access points are not proxies, as the vendor recommends for a start.
func ipQualityScore(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	var a ipQualityScoreResponse
	path := "/api/json/ip/" + url.PathEscape(c.Account.Secrets["api_key"]) + "/" + url.PathEscape(addr.String())
	query := url.Values{"strictness": {"0"}, "allow_public_access_points": {"true"}}
	r, err := c.getJSON(ctx, path, query, nil, nil, &a)
	if err != nil {
		return Risk{}, err
	}
	switch {
	case a.Success == nil:
		return Risk{}, c.fail(unusable, "response without success")
	case !*a.Success:
		return Risk{}, c.byMessage(string(a.Message), ipQualityScorePhrases)
	case a.VPN == nil || a.Proxy == nil || a.Tor == nil:
		return Risk{}, c.fail(unusable, "response without vpn, proxy or tor")
	}
	risk, err := c.flagged(ipQualityScoreFlags, r.Body)
	risk.CountryCode, risk.City = a.CountryCode.country(), a.City.pointer()
	risk.ASN, risk.Network = a.ASN.asn(), cmp.Or(a.Organization.pointer(), a.ISP.pointer())
	return risk, err
}
