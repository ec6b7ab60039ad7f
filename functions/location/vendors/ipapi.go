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

// ipAPISpec is ip-api.com's pro service (ip-api.com/docs/api:json). The free
// one is for non-commercial use and without TLS.
func ipAPISpec() upstream.Spec {
	return upstream.Spec{
		Name: "ip-api", Title: "ip-api.com (pro)", Endpoint: "https://pro.ip-api.com",
		Secrets: []upstream.Field{{Name: "api_key", Description: "key of a pro subscription", Required: true}},
	}
}

// ipAPIAnswer is what is used of an answer.
type ipAPIAnswer struct {
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

// ipAPIFields are the fields that the answer shall have.
const ipAPIFields = "status,message,country,countryCode,city,isp,lat,lon,timezone,query"

// ipAPI fails with HTTP 200 and a message.
func ipAPI(ctx context.Context, c iplookup.Caller, addr netip.Addr) (Place, error) {
	r, err := c.Get(ctx, "/json/"+url.PathEscape(addr.String()), url.Values{"key": {c.Account.Secrets["api_key"]}, "fields": {ipAPIFields}}, nil)
	if err != nil {
		return Place{}, err
	}
	// A bad key is answered in plain text, with a status that is not documented.
	if r.Status < http.StatusInternalServerError && strings.Contains(strings.ToLower(string(r.Body)), "invalid key") {
		return Place{}, c.Fail(iplookup.Credentials, "invalid key")
	}
	if err := c.ByStatus(r, nil); err != nil {
		return Place{}, err
	}
	var a ipAPIAnswer
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
		return Place{}, c.Fail(iplookup.Unusable, "answer without a known status")
	}
	p := Place{
		Country: a.Country.Pointer(), CountryCode: a.CountryCode.Country(), City: a.City.Pointer(),
		ISP: a.ISP.Pointer(), Timezone: a.Timezone.Pointer(),
	}
	p.Latitude, p.Longitude = iplookup.Coordinates(a.Latitude, a.Longitude)
	return p, nil
}
