package vendors

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// ipGeolocationSpec is ipgeolocation.io, API v3 (the vendor's OpenAPI document of 2026-04-30).
var ipGeolocationSpec = upstream.Spec{
	Name: "ipgeolocation", Title: "ipgeolocation.io", Endpoint: "https://api.ipgeolocation.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key; IP risk needs a plan with the security module", Required: true}},
}

// ipGeolocationResponse holds the used fields of a response of /v3/ipgeo.
type ipGeolocationResponse struct {
	IP       text `json:"ip"`
	Message  text `json:"message"` // of an error
	Location *struct {
		Country     text   `json:"country_name"`
		CountryCode text   `json:"country_code2"`
		City        text   `json:"city"`
		Latitude    number `json:"latitude"`
		Longitude   number `json:"longitude"`
	} `json:"location"`
	ASN struct {
		Number       text `json:"as_number"`
		Organization text `json:"organization"`
	} `json:"asn"`
	Timezone struct {
		Name text `json:"name"`
	} `json:"time_zone"`
	Security jsontext.Value `json:"security"` // with include=security
}

// ipGeolocationFlags are the flags of the module security (IPGeolocation/openapi of 2026-04-30).
var ipGeolocationFlags = []Flag{
	{Path: "is_vpn", Sets: VPN},
	{Path: "is_proxy", Sets: Proxy},
	{Path: "is_residential_proxy", Sets: Proxy},
	{Path: "is_tor", Sets: Tor},
	{Path: "is_relay", Sets: Relay},
	{Path: "is_anonymous", Sets: Unnamed},
	{Path: "is_cloud_provider", Sets: Hosting},
	{Path: "is_known_attacker", Sets: Ignored},
	{Path: "is_bot", Sets: Ignored},
	{Path: "is_spam", Sets: Ignored},
}

var ipGeolocationStatuses = map[int]meaning{
	http.StatusNotFound: unknown, // a valid address that is not in the database
	http.StatusLocked:   unknown, // bogon or private address
}

// ipGeolocation makes a look-up at ipgeolocation.io. A non-empty include names additional modules.
func (c Caller) ipGeolocation(ctx context.Context, addr netip.Addr, include string) (a ipGeolocationResponse, err error) {
	query := url.Values{"apiKey": {c.Account.Secrets["api_key"]}, "ip": {addr.String()}}
	if include != "" {
		query.Set("include", include)
	}
	if _, err := c.getJSON(ctx, "/v3/ipgeo", query, nil, ipGeolocationStatuses, &a); err != nil {
		return a, err
	}
	if a.Message != "" && a.Location == nil {
		return a, c.fail(rejected, string(a.Message))
	}
	if a.Location == nil {
		return a, c.fail(unusable, "response without location")
	}
	return a, nil
}

// ipGeolocationRisk returns all five flags. The vendor calls hosting a cloud provider.
func ipGeolocationRisk(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	a, err := c.ipGeolocation(ctx, addr, "security")
	if err != nil {
		return Risk{}, err
	}
	if a.Security.Kind() != '{' {
		return Risk{}, c.fail(credentials, "response without security: not in the key's plan")
	}
	risk, err := c.flagged(ipGeolocationFlags, a.Security)
	risk.CountryCode, risk.City = a.Location.CountryCode.country(), a.Location.City.pointer()
	risk.ASN, risk.Network = a.ASN.Number.asn(), a.ASN.Organization.pointer()
	return risk, err
}

// ipGeolocationPlace returns the organization of the network as the ISP, because the vendor has no field for the ISP.
func ipGeolocationPlace(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
	a, err := c.ipGeolocation(ctx, addr, "")
	if err != nil {
		return Place{}, err
	}
	return Place{
		Country: a.Location.Country.pointer(), CountryCode: a.Location.CountryCode.country(), City: a.Location.City.pointer(),
		ISP: a.ASN.Organization.pointer(), Timezone: a.Timezone.Name.pointer(),
	}.at(a.Location.Latitude, a.Location.Longitude), nil
}
