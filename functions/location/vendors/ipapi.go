package vendors

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"svcapi/shared/iplookup"
	"svcapi/shared/upstream"
)

// ipAPISpec is ip-api.com's pro service (ip-api.com/docs/api:json). The free service has no TLS and no commercial use.
func ipAPISpec() upstream.Spec {
	return upstream.Spec{
		Name: "ip-api", Title: "ip-api.com (pro)", Endpoint: "https://pro.ip-api.com",
		Secrets: []upstream.Field{{Name: "api_key", Description: "key of a pro subscription", Required: true}},
	}
}

// ipAPIResponse is the used part of a response.
type ipAPIResponse struct {
	Status      iplookup.Text   `json:"status"` // success or fail
	Message     iplookup.Text   `json:"message"`
	Country     iplookup.Text   `json:"country"`
	CountryCode iplookup.Text   `json:"countryCode"`
	City        iplookup.Text   `json:"city"`
	ISP         iplookup.Text   `json:"isp"`
	Latitude    iplookup.Number `json:"lat"`
	Longitude   iplookup.Number `json:"lon"`
	Timezone    iplookup.Text   `json:"timezone"`
}

// ipAPIFields names the fields of the response.
const ipAPIFields = "status,message,country,countryCode,city,isp,lat,lon,timezone,query"

// ipAPI reads the status in the body, because failures have HTTP status 200.
func ipAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	r, err := c.Get(ctx, "/json/"+url.PathEscape(addr.String()), url.Values{"key": {c.Account.Secrets["api_key"]}, "fields": {ipAPIFields}}, nil)
	if err != nil {
		return Place{}, err
	}
	// The response to an invalid key is plain text, with an undocumented status.
	if r.Status < http.StatusInternalServerError && strings.Contains(strings.ToLower(string(r.Body)), "invalid key") {
		return Place{}, c.Fail(iplookup.Credentials, "invalid key")
	}
	if err := c.ByStatus(r, nil); err != nil {
		return Place{}, err
	}
	var a ipAPIResponse
	if err := c.Decode(r.Body, &a); err != nil {
		return Place{}, err
	}
	switch {
	case a.Status == "success":
	case a.Status == "fail" && (a.Message == "private range" || a.Message == "reserved range"):
		return Place{}, iplookup.ErrUnknown
	case a.Status == "fail":
		return Place{}, c.Fail(iplookup.Rejected, string(a.Message))
	default:
		return Place{}, c.Fail(iplookup.Unusable, "response without a known status")
	}
	p := Place{
		Country: a.Country.Pointer(), CountryCode: a.CountryCode.Country(), City: a.City.Pointer(),
		ISP: a.ISP.Pointer(), Timezone: a.Timezone.Pointer(),
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Latitude, a.Longitude)
	return p, nil
}
