package vendors

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/netip"
	"net/url"

	"svcapi/shared/upstream"
)

// maxMindSpec is MaxMind's GeoIP web service (dev.maxmind.com, version 2.1).
var maxMindSpec = upstream.Spec{
	Name: "maxmind", Title: "MaxMind GeoIP web service", Endpoint: "https://geoip.maxmind.com",
	Secrets: []upstream.Field{
		{Name: "account_id", Description: "account ID", Required: true},
		{Name: "license_key", Description: "license key; IP risk uses GeoIP Insights, location GeoIP City", Required: true},
	},
}

// maxMindFields are the used fields of a response of City and Insights, which omit booleans that are false.
var maxMindFields = fields{
	country: "country.names.en", countryCode: "country.iso_code", city: "city.names.en", timezone: "location.time_zone",
	latitude: "location.latitude", longitude: "location.longitude", asn: "traits.autonomous_system_number",
	network: []string{"traits.autonomous_system_organization", "traits.isp"},
	isp:     []string{"traits.isp", "traits.autonomous_system_organization"},
}

// maxMindFlags are the flags of Insights' anonymizer, which the databases Anonymous Plus and Anonymous IP share
// (dev.maxmind.com). MaxMind has no flag for relays, and is_anonymous includes hosting. The object residential has the
// fields of the feed of residential proxies, also where every flag is false (GeoIP2-dotnet 6.1.0, geoip2-node 7.1.0).
var maxMindFlags = Flags{
	UnnamedOrHosting: {"is_anonymous"}, VPN: {"is_anonymous_vpn"},
	Proxy: {"is_public_proxy", "is_residential_proxy", "residential"}, Tor: {"is_tor_exit_node"},
	Hosting: {"is_hosting_provider"},
}

var maxMindCodes = map[text]meaning{
	"IP_ADDRESS_NOT_FOUND":  unknown,
	"IP_ADDRESS_RESERVED":   unknown,
	"IP_ADDRESS_INVALID":    rejected,
	"IP_ADDRESS_REQUIRED":   rejected,
	"AUTHORIZATION_INVALID": credentials,
	"LICENSE_KEY_REQUIRED":  credentials,
	"ACCOUNT_ID_REQUIRED":   credentials,
	"PERMISSION_REQUIRED":   credentials,
	"INSUFFICIENT_FUNDS":    quota,
}

// maxMind makes a look-up with a product of MaxMind's web service: city for a place, insights for a risk.
func maxMind(product string) lookup {
	return func(ctx context.Context, c Caller, addr netip.Addr) (d, flags document, err error) {
		user := c.Account.Secrets["account_id"] + ":" + c.Account.Secrets["license_key"]
		r, err := c.get(ctx, "/geoip/v2.1/"+product+"/"+url.PathEscape(addr.String()), nil, http.Header{
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user))},
			"Accept":        {"application/json"},
		})
		if err != nil {
			return nil, nil, err
		}
		d, decoded := c.decode(r.Body)
		code := d.text("code")
		detail := string(code + ": " + d.text("error"))
		if meaning, ok := maxMindCodes[code]; ok {
			return nil, nil, c.fail(meaning, detail)
		}
		if err := c.byStatus(r, nil); err != nil {
			return nil, nil, err
		}
		switch {
		case decoded != nil:
			return nil, nil, decoded
		case code != "":
			return nil, nil, c.fail(rejected, detail)
		case d.object("traits") == nil:
			return nil, nil, c.fail(unusable, "response without traits")
		}
		return d, d.object("anonymizer"), nil
	}
}
