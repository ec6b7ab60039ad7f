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
var IPInfo = upstream.Spec{
	Name: "ipinfo", Title: "ipinfo.io", Endpoint: "https://api.ipinfo.io",
	Secrets: []upstream.Field{{Name: "token", Description: "access token of a Core plan, for IP risk of a Plus plan", Required: true}},
}

// IPInfoStatus holds the fields of every response that show its meaning.
type IPInfoStatus struct {
	IP    Text           `json:"ip"`
	Bogon bool           `json:"bogon"`
	Title Text           `json:"title"` // of an error
	Error jsontext.Value `json:"error"` // of an error: an object or a text
}

// IPInfoResponse holds the used fields of a response of /lookup.
type IPInfoResponse struct {
	IPInfoStatus
	Geo *struct {
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

// IPInfoGet makes a look-up at ipinfo.io and parses the response, whose fields include the status.
func (c Caller) IPInfoGet(ctx context.Context, path string, into any, status *IPInfoStatus) error {
	header := http.Header{"Authorization": {"Bearer " + c.Account.Secrets["token"]}}
	r, err := c.GetJSON(ctx, path, nil, header, ipInfoStatuses, into)
	switch {
	case err != nil:
		return err
	case status.Bogon:
		return ErrUnknown
	case status.Title != "" || len(status.Error) > 0 && status.Error.Kind() != 'n':
		return c.Fail(Rejected, string(r.Body))
	case status.IP == "":
		return c.Fail(Unusable, "response without ip")
	}
	return nil
}

// IPInfo makes a look-up at ipinfo.io's Core and Plus API.
func (c Caller) IPInfo(ctx context.Context, addr netip.Addr) (a IPInfoResponse, err error) {
	if err := c.IPInfoGet(ctx, "/lookup/"+url.PathEscape(addr.String()), &a, &a.IPInfoStatus); err != nil {
		return a, err
	}
	switch {
	case a.Geo == nil:
		return a, c.Fail(Unusable, "response without geo")
	case a.Geo.CountryCode.Country() == nil && a.AS.ASN.ASN() == nil:
		return a, ErrUnknown
	}
	return a, nil
}
