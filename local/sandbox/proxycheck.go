package sandbox

import "net/http"

// ProxyCheckKey is the key that the sandbox's proxycheck.io accepts.
const ProxyCheckKey = "proxycheck-sandbox-api-key"

// proxyCheck simulates proxycheck.io's API v3 for one address a request.
func proxyCheck() vendor {
	return keyed("proxycheck", "key", ProxyCheckKey, "GET /v3/{ip}",
		proxyCheckError(http.StatusBadRequest, "error", "No IP address was supplied."), proxyCheckLookup)
}

func proxyCheckError(status int, word, message string) response {
	return jsonResponse(status, object{"status": word, "message": message})
}

func proxyCheckLookup(_ *request, ip string, f facts) responses {
	kind := "Residential"
	if f.hosting {
		kind = "Hosting"
	}
	return responses{
		Accepted: success(object{
			"status": "ok",
			ip: object{
				"network": object{"asn": f.as(), "range": nil, "hostname": nil, "provider": f.network, "organisation": f.network, "type": kind},
				"location": object{
					"continent_name": nil, "continent_code": nil, "country_name": f.country, "country_code": f.code, "region_name": nil,
					"region_code": nil, "city_name": f.city, "postal_code": nil, "latitude": f.latitude, "longitude": f.longitude, "timezone": f.timezone,
				},
				"device_estimate": object{"address": 1, "subnet": 1},
				"detections": object{
					"proxy": f.proxy, "vpn": f.vpn, "compromised": false, "scraper": false, "tor": f.tor, "hosting": f.hosting,
					"anonymous": f.vpn || f.proxy || f.tor, "risk": 0,
				},
				"operator": nil, "last_updated": "2026-01-01T00:00:00Z",
			},
			"query_time": 5,
		}),
		CredentialsRefused: proxyCheckError(http.StatusForbidden, "denied", "The API key that was supplied is not valid."),
		invalidAddress:     proxyCheckError(http.StatusBadRequest, "error", "No valid IP address was supplied."),
		Rejected:           proxyCheckError(http.StatusBadRequest, "error", "The request cannot be served."),
		UnknownAddress:     success(object{"status": "ok", "query_time": 5}),
		QuotaUsed:          proxyCheckError(http.StatusTooManyRequests, "denied", "1,000 free queries exhausted. Please try again tomorrow."),
	}
}
