package iplookup

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// IPInfo is ipinfo.io's Core and Plus API (the vendor's Go client of 2026-01 and OpenAPI document).
func IPInfo() upstream.Spec {
	return upstream.Spec{
		Name: "ipinfo", Title: "ipinfo.io", Endpoint: "https://api.ipinfo.io",
		Secrets: []upstream.Field{{Name: "token", Description: "access token of a Core plan, for IP risk of a Plus plan", Required: true}},
	}
}

// IPInfoResponse holds the used fields of a response of /lookup.
type IPInfoResponse struct {
	IP    Text           `json:"ip"`
	Bogon bool           `json:"bogon"`
	Title Text           `json:"title"` // of an error
	Error jsontext.Value `json:"error"` // of an error: an object or a text
	Geo   *struct {
		Country     Text   `json:"country"`
		CountryCode Text   `json:"country_code"`
		City        Text   `json:"city"`
		Latitude    Number `json:"latitude"`
		Longitude   Number `json:"longitude"`
		Timezone    Text   `json:"timezone"`
	} `json:"geo"`
	AS struct {
		ASN  Text `json:"asn"`
		Name Text `json:"name"`
	} `json:"as"`
	Anonymous *struct { // Plus
		VPN   bool `json:"is_vpn"`
		Proxy bool `json:"is_proxy"`
		Tor   bool `json:"is_tor"`
		Relay bool `json:"is_relay"`
	} `json:"anonymous"`
	Hosting bool `json:"is_hosting"`
}

var ipInfoStatuses = map[int]Meaning{http.StatusNotFound: Unknown}

// IPInfo makes a look-up at ipinfo.io.
func (c Caller) IPInfo(ctx context.Context, addr netip.Addr) (a IPInfoResponse, err error) {
	header := http.Header{"Authorization": {"Bearer " + c.Account.Secrets["token"]}}
	r, err := c.GetJSON(ctx, "/lookup/"+url.PathEscape(addr.String()), nil, header, ipInfoStatuses, &a)
	if err != nil {
		return a, err
	}
	switch {
	case a.Bogon:
		return a, ErrUnknown
	case a.Title != "" || len(a.Error) > 0 && a.Error.Kind() != 'n':
		return a, c.Fail(Rejected, string(r.Body))
	case a.IP == "" || a.Geo == nil:
		return a, c.Fail(Unusable, "response without ip or geo")
	case a.Geo.CountryCode.Country() == nil && a.AS.ASN.ASN() == nil:
		return a, ErrUnknown
	}
	return a, nil
}
