package sandbox

import "net/http"

// IPAPIKey is the key that the sandbox's ip-api.com accepts.
const IPAPIKey = "ip-api-sandbox-key"

// ipAPI simulates ip-api.com's pro API, whose failures have status 200.
func ipAPI() vendor {
	return keyed("ip-api", "key", IPAPIKey, "GET /json/{ip}", textResponse(http.StatusNotFound, "404 Not Found"), ipAPILookup)
}

func ipAPILookup(_ *request, ip string, f facts) responses {
	fail := func(message string) response {
		return success(object{"status": "fail", "message": message, "query": ip})
	}
	return responses{
		Accepted: success(object{
			"status": "success", "country": f.country, "countryCode": f.code, "region": "", "regionName": "", "city": f.city, "zip": "",
			"lat": f.latitude, "lon": f.longitude, "timezone": f.timezone, "isp": f.network, "org": f.network,
			"as": f.as() + " " + f.network, "asname": "", "query": ip, "proxy": f.proxy || f.vpn || f.tor, "hosting": f.hosting,
		}),
		CredentialsRefused: textResponse(http.StatusForbidden, "invalid key"),
		invalidAddress:     fail("invalid query"),
		Rejected:           fail("invalid query"),
		UnknownAddress:     fail("reserved range"),
		QuotaUsed:          textResponse(http.StatusTooManyRequests, ""),
	}
}
