package sandbox

import "net/http"

// VPNAPIKey is the key that the sandbox's vpnapi.io accepts.
const VPNAPIKey = "vpnapi-sandbox-api-key"

// vpnAPI simulates vpnapi.io's API.
func vpnAPI() vendor {
	return keyed("vpnapi", "key", VPNAPIKey, "GET /api/{ip}", messageResponse(http.StatusNotFound, "Not found"), vpnAPILookup)
}

func vpnAPILookup(_ *request, ip string, f facts) responses {
	return responses{
		Accepted: success(object{
			"ip":       ip,
			"security": object{"vpn": f.vpn, "proxy": f.proxy, "tor": f.tor, "relay": f.relay},
			"location": object{
				"city": f.city, "region": "", "country": f.country, "continent": "", "region_code": "", "country_code": f.code, "continent_code": "",
				"latitude": degrees(f.latitude), "longitude": degrees(f.longitude), "time_zone": f.timezone, "locale_code": "en", "metro_code": "",
				"is_in_european_union": false,
			},
			"network": object{"network": "", "autonomous_system_number": f.as(), "autonomous_system_organization": f.network},
		}),
		CredentialsRefused: messageResponse(http.StatusForbidden, "Invalid API key"),
		invalidAddress:     messageResponse(http.StatusBadRequest, ip+" is an invalid IP address"),
		Rejected:           messageResponse(http.StatusBadRequest, "The request cannot be served."),
		UnknownAddress:     success(object{"ip": ip, "message": "IP address is not in the database"}),
		QuotaUsed:          messageResponse(http.StatusTooManyRequests, "Daily rate limit exceeded"),
	}
}
