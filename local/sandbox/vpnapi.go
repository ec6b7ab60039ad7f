package sandbox

import "net/http"

// VPNAPIKey is the key that the sandbox's vpnapi.io accepts.
const VPNAPIKey = "vpnapi-sandbox-api-key"

// vpnAPI simulates vpnapi.io's API.
func vpnAPI() vendor {
	return vendor{
		name:     "vpnapi",
		secrets:  []string{"key"},
		accepted: []string{VPNAPIKey},
		routes:   []route{{"GET /api/{ip}", vpnAPILookup}},
		unknown:  vpnAPIError(http.StatusNotFound, "Not found"),
	}
}

func vpnAPIError(status int, message string) response {
	return jsonResponse(status, object{"message": message})
}

func vpnAPILookup(r *request) result {
	ip := r.PathValue("ip")
	return lookUp(ip, r.URL.Query().Get("key") == VPNAPIKey, responses{
		CredentialsRefused: vpnAPIError(http.StatusForbidden, "Invalid API key"),
		invalidAddress:     vpnAPIError(http.StatusBadRequest, ip+" is an invalid IP address"),
		Rejected:           vpnAPIError(http.StatusBadRequest, "The request cannot be served."),
		UnknownAddress:     success(object{"ip": ip, "message": "IP address is not in the database"}),
		QuotaUsed:          vpnAPIError(http.StatusTooManyRequests, "Daily rate limit exceeded"),
	}, func(f facts) object {
		return object{
			"ip":       ip,
			"security": object{"vpn": f.vpn, "proxy": f.proxy, "tor": f.tor, "relay": f.relay},
			"location": object{
				"city": f.city, "region": "", "country": f.country, "continent": "", "region_code": "", "country_code": f.code, "continent_code": "",
				"latitude": degrees(f.latitude), "longitude": degrees(f.longitude), "time_zone": f.timezone, "locale_code": "en", "metro_code": "",
				"is_in_european_union": false,
			},
			"network": object{"network": "", "autonomous_system_number": f.as(), "autonomous_system_organization": f.network},
		}
	})
}
