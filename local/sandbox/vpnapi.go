package sandbox

import "net/http"

// VPNAPIKey is what the sandbox's vpnapi.io accepts.
const VPNAPIKey = "vpnapi-sandbox-api-key"

// vpnAPI speaks vpnapi.io's API.
func vpnAPI() vendor {
	return vendor{
		name:     "vpnapi",
		secrets:  []string{"key"},
		accepted: []string{VPNAPIKey},
		routes:   []route{{"GET /api/{ip}", vpnAPILookup}},
		unknown:  vpnAPIMessage(http.StatusNotFound, "Not found"),
	}
}

func vpnAPIMessage(status int, message string) reply {
	return jsonReply(status, object{"message": message})
}

func vpnAPILookup(r *request) exchange {
	ip := r.PathValue("ip")
	ex := lookedUp(ip)
	f, ok := factsOf(ip)
	refusal := vpnAPIMessage(http.StatusForbidden, "Invalid API key")
	switch {
	case r.URL.Query().Get("key") != VPNAPIKey:
		return ex.refuse(refusal)
	case !ok:
		return ex.refuse(vpnAPIMessage(http.StatusBadRequest, ip+" is an invalid IP address"))
	}
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"ip":       ip,
			"security": object{"vpn": f.vpn, "proxy": f.proxy, "tor": f.tor, "relay": f.relay},
			"location": object{
				"city": f.city, "region": "", "country": f.country, "continent": "", "region_code": "", "country_code": f.code, "continent_code": "",
				"latitude": degrees(f.latitude), "longitude": degrees(f.longitude), "time_zone": f.timezone, "locale_code": "en", "metro_code": "",
				"is_in_european_union": false,
			},
			"network": object{"network": "", "autonomous_system_number": f.as(), "autonomous_system_organization": f.network},
		}),
		Rejected:           vpnAPIMessage(http.StatusBadRequest, "The request cannot be served."),
		CredentialsRefused: refusal,
		UnknownAddress:     jsonReply(http.StatusOK, object{"ip": ip, "message": "IP address is not in the database"}),
		QuotaUsed:          vpnAPIMessage(http.StatusTooManyRequests, "Daily rate limit exceeded"),
	}
	return ex
}
