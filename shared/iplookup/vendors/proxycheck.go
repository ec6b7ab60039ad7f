package vendors

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/upstream"
)

// proxyCheckSpec is proxycheck.io, API v3 (the vendor's PHP client 1.0.3 of 2026-06).
var proxyCheckSpec = upstream.Spec{
	Name: "proxycheck", Title: "proxycheck.io", Endpoint: "https://proxycheck.io",
	Secrets: []upstream.Field{{Name: "api_key", Description: "API key", Required: true}},
}

// proxyCheckVersion pins the format of the responses (proxycheck.io/api: a query without ver has the newest version).
const proxyCheckVersion = "10-October-2025"

// proxyCheckAddress is the used part of a response's member for the address.
type proxyCheckAddress struct {
	Network struct {
		ASN          text `json:"asn"`
		Provider     text `json:"provider"`
		Organisation text `json:"organisation"`
	} `json:"network"`
	Location struct {
		CountryCode text `json:"country_code"`
		City        text `json:"city_name"`
	} `json:"location"`
	Detections jsontext.Value `json:"detections"`
}

// proxyCheckFlags are the detections (proxycheck.io/api, version 3). The vendor has no flag for relays. An address that is
// anonymous without another detection has no named kind.
var proxyCheckFlags = []Flag{
	{Path: "vpn", Sets: VPN},
	{Path: "proxy", Sets: Proxy},
	{Path: "tor", Sets: Tor},
	{Path: "anonymous", Sets: Unnamed},
	{Path: "hosting", Sets: Hosting},
	{Path: "compromised", Sets: Ignored},
	{Path: "scraper", Sets: Ignored},
}

// proxyCheckResponse is a response. A member is named by the address in any of its spellings.
type proxyCheckResponse struct {
	Status  text                      `json:"status"`
	Message text                      `json:"message"`
	Members map[string]jsontext.Value `json:",embed"`
}

// proxyCheck makes a look-up at proxycheck.io.
func proxyCheck(ctx context.Context, c Caller, addr netip.Addr) (Risk, error) {
	r, err := c.get(ctx, "/v3/"+url.PathEscape(addr.String()), url.Values{"key": {c.Account.Secrets["api_key"]}, "ver": {proxyCheckVersion}}, nil)
	if err != nil {
		return Risk{}, err
	}
	var a proxyCheckResponse
	if err := c.decode(r.Body, &a); err != nil {
		if failed := c.byStatus(r, nil); failed != nil {
			return Risk{}, failed
		}
		return Risk{}, err
	}
	if err := a.failure(c, r); err != nil {
		return Risk{}, err
	}
	var found *proxyCheckAddress
	for name, value := range a.Members {
		if named, err := netip.ParseAddr(name); err == nil && named.Unmap() == addr && value.Kind() == '{' {
			found = new(proxyCheckAddress)
			if err := c.decode(value, found); err != nil {
				return Risk{}, err
			}
		}
	}
	if found == nil || found.Detections.Kind() != '{' {
		return Risk{}, ErrUnknown
	}
	risk, err := c.flagged(proxyCheckFlags, found.Detections)
	risk.CountryCode, risk.City = found.Location.CountryCode.country(), found.Location.City.pointer()
	risk.ASN = found.Network.ASN.asn()
	risk.Network = cmp.Or(found.Network.Provider.pointer(), found.Network.Organisation.pointer())
	return risk, err
}

// failure returns the error of the response. The body decides before the HTTP status: ok and warning are successes,
// denied is about the account, error about the request.
func (a *proxyCheckResponse) failure(c Caller, r *upstream.Response) error {
	detail := string(a.Status + ": " + a.Message)
	switch a.Status {
	case "ok", "warning":
		return nil
	case "denied":
		if r.Status == http.StatusTooManyRequests || strings.Contains(strings.ToLower(detail), "quer") {
			return c.fail(quota, detail)
		}
		return c.fail(credentials, detail)
	case "error":
		return c.fail(rejected, detail)
	}
	if err := c.byStatus(r, nil); err != nil {
		return err
	}
	return c.fail(unusable, "response without a known status")
}
