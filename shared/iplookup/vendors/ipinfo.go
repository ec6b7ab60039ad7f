package vendors

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// ipInfoSpec is ipinfo.io's Core and Plus API (the vendor's Go client of 2026-01 and OpenAPI document).
var ipInfoSpec = upstream.Spec{
	Name: "ipinfo", Title: "ipinfo.io", Endpoint: "https://api.ipinfo.io",
	Secrets: []upstream.Field{{Name: "token", Description: "access token of a Core plan, for IP risk of a Plus plan", Required: true}},
}

// ipInfoStatus holds the fields of every response that show its meaning.
type ipInfoStatus struct {
	IP    text           `json:"ip"`
	Bogon bool           `json:"bogon"`
	Title text           `json:"title"` // of an error
	Error jsontext.Value `json:"error"` // of an error: an object or a text

	body []byte
}

// ipInfoResponse holds the used fields of a response of /lookup.
type ipInfoResponse struct {
	ipInfoStatus
	Geo *struct {
		Country     text   `json:"country"`
		CountryCode text   `json:"country_code"`
		City        text   `json:"city"`
		Latitude    number `json:"latitude"`
		Longitude   number `json:"longitude"`
		Timezone    text   `json:"timezone"`
	} `json:"geo"`
	AS struct {
		ASN  text `json:"asn"`
		Name text `json:"name"`
	} `json:"as"`
	Anonymous jsontext.Value `json:"anonymous"` // Plus
}

// ipInfoFlags are the flags of the Plus API (the vendor's OpenAPI document, and the example of its page, where
// is_res_proxy is true beside a false is_proxy).
var ipInfoFlags = []Flag{
	{Path: "anonymous.is_vpn", Sets: VPN},
	{Path: "anonymous.is_proxy", Sets: Proxy},
	{Path: "anonymous.is_res_proxy", Sets: Proxy},
	{Path: "anonymous.is_tor", Sets: Tor},
	{Path: "anonymous.is_relay", Sets: Relay},
	{Path: "is_anonymous", Sets: Unnamed},
	{Path: "is_hosting", Sets: Hosting},
	{Path: "is_anycast", Sets: Ignored},
	{Path: "is_mobile", Sets: Ignored},
	{Path: "is_satellite", Sets: Ignored},
}

var ipInfoStatuses = map[int]meaning{http.StatusNotFound: unknown}

// ipInfoGet makes a look-up at ipinfo.io and parses the response, whose fields include the status.
func (c Caller) ipInfoGet(ctx context.Context, path string, into any, status *ipInfoStatus) error {
	header := http.Header{"Authorization": {"Bearer " + c.Account.Secrets["token"]}}
	r, err := c.getJSON(ctx, path, nil, header, ipInfoStatuses, into)
	if err != nil {
		return err
	}
	status.body = r.Body
	switch {
	case status.Bogon:
		return ErrUnknown
	case status.Title != "" || len(status.Error) > 0 && status.Error.Kind() != 'n':
		return c.fail(rejected, string(r.Body))
	case status.IP == "":
		return c.fail(unusable, "response without ip")
	}
	return nil
}

// ipInfo makes a look-up at ipinfo.io's Core and Plus API.
func (c Caller) ipInfo(ctx context.Context, addr netip.Addr) (a ipInfoResponse, err error) {
	if err := c.ipInfoGet(ctx, "/lookup/"+url.PathEscape(addr.String()), &a, &a.ipInfoStatus); err != nil {
		return a, err
	}
	switch {
	case a.Geo == nil:
		return a, c.fail(unusable, "response without geo")
	case a.Geo.CountryCode.country() == nil && a.AS.ASN.asn() == nil:
		return a, ErrUnknown
	}
	return a, nil
}

// ipInfoRisk returns all five flags, on a Plus plan.
func ipInfoRisk(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	a, err := c.ipInfo(ctx, addr)
	if err != nil {
		return Risk{}, err
	}
	if a.Anonymous.Kind() != '{' {
		return Risk{}, c.fail(credentials, "response without anonymous: not in the token's plan")
	}
	risk, err := c.flagged(ipInfoFlags, a.body)
	risk.CountryCode, risk.City = a.Geo.CountryCode.country(), a.Geo.City.pointer()
	risk.ASN, risk.Network = a.AS.ASN.asn(), a.AS.Name.pointer()
	return risk, err
}

func ipInfoPlace(ctx context.Context, c Caller, addr netip.Addr) (Place, error) {
	a, err := c.ipInfo(ctx, addr)
	if err != nil {
		return Place{}, err
	}
	return Place{
		Country: a.Geo.Country.pointer(), CountryCode: a.Geo.CountryCode.country(), City: a.Geo.City.pointer(),
		ISP: a.AS.Name.pointer(), Timezone: a.Geo.Timezone.pointer(),
	}.at(a.Geo.Latitude, a.Geo.Longitude), nil
}
