package sandbox

import "net/http"

// IPGeolocationKey is the key that the sandbox's ipgeolocation.io accepts.
const IPGeolocationKey = "ipgeolocation-sandbox-api-key"

// ipGeolocation simulates ipgeolocation.io's API v3.
func ipGeolocation() vendor {
	v := keyed("ipgeolocation", "apiKey", IPGeolocationKey, "GET /v3/ipgeo",
		messageResponse(http.StatusNotFound, "Not Found"), ipGeolocationLookup)
	v.routes = append(v.routes, route{"GET /v3/security", v.routes[0].serve})
	return v
}

func ipGeolocationLookup(r *request, ip string, f facts) responses {
	body := object{
		"ip": ip,
		"location": object{
			"continent_code": "", "country_code2": f.code, "country_name": f.country, "city": f.city,
			"latitude": degrees(f.latitude), "longitude": degrees(f.longitude),
		},
		"asn":       object{"as_number": f.as(), "organization": f.network, "country": f.code},
		"time_zone": object{"name": f.timezone},
	}
	if in := r.URL; in.Query().Get("include") == "security" || in.Path == "/ipgeolocation/v3/security" {
		body["security"] = object{
			"threat_score": 0, "is_tor": f.tor, "is_proxy": f.proxy, "proxy_provider_names": []string{}, "proxy_confidence_score": 0,
			"is_residential_proxy": false, "is_vpn": f.vpn, "vpn_provider_names": []string{}, "is_relay": f.relay,
			"relay_provider_name": "", "is_anonymous": f.vpn || f.proxy || f.tor || f.relay, "is_known_attacker": false,
			"is_bot": false, "is_spam": false, "is_cloud_provider": f.hosting, "cloud_provider_name": "",
		}
	}
	return responses{
		Accepted:           success(body),
		CredentialsRefused: messageResponse(http.StatusUnauthorized, "Provided API key is not valid. Contact technical support for assistance at support@ipgeolocation.io"),
		invalidAddress:     messageResponse(http.StatusBadRequest, "'"+ip+"' is not a valid IP address."),
		Rejected:           messageResponse(http.StatusBadRequest, "Bad request."),
		UnknownAddress:     messageResponse(http.StatusNotFound, "Provided IP address '"+ip+"' does not exist in our database."),
		QuotaUsed:          messageResponse(http.StatusTooManyRequests, "You have exceeded the limit of your plan."),
	}
}
