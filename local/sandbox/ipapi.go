package sandbox

import "net/http"

// IPAPIKey is the key that the sandbox's ip-api.com accepts.
const IPAPIKey = "ip-api-sandbox-key"

// ipAPI simulates ip-api.com's pro API, whose failures have status 200.
func ipAPI() vendor {
	return vendor{
		name:     "ip-api",
		secrets:  []string{"key"},
		accepted: []string{IPAPIKey},
		routes:   []route{{"GET /json/{ip}", ipAPILookup}},
		unknown:  textResponse(http.StatusNotFound, "404 Not Found"),
	}
}

func ipAPILookup(r *request) result {
	ip := r.PathValue("ip")
	fail := func(message string) response {
		return success(object{"status": "fail", "message": message, "query": ip})
	}
	return lookUp(ip, r.URL.Query().Get("key") == IPAPIKey, responses{
		CredentialsRefused: textResponse(http.StatusForbidden, "invalid key"),
		invalidAddress:     fail("invalid query"),
		Rejected:           fail("invalid query"),
		UnknownAddress:     fail("reserved range"),
		QuotaUsed:          textResponse(http.StatusTooManyRequests, ""),
	}, func(f facts) object {
		return object{
			"status": "success", "country": f.country, "countryCode": f.code, "region": "", "regionName": "", "city": f.city, "zip": "",
			"lat": f.latitude, "lon": f.longitude, "timezone": f.timezone, "isp": f.network, "org": f.network,
			"as": f.as() + " " + f.network, "asname": "", "query": ip, "proxy": f.proxy || f.vpn || f.tor, "hosting": f.hosting,
		}
	})
}
