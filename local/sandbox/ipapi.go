package sandbox

import "net/http"

// IPAPIKey is what the sandbox's ip-api.com accepts.
const IPAPIKey = "ip-api-sandbox-key"

// ipAPI speaks ip-api.com's pro API: failures come with status 200.
func ipAPI() vendor {
	return vendor{
		name:     "ip-api",
		secrets:  []string{"key"},
		accepted: []string{IPAPIKey},
		routes:   []route{{"GET /json/{ip}", ipAPILookup}},
		unknown:  textReply(http.StatusNotFound, "404 Not Found"),
	}
}

func ipAPILookup(r *request) exchange {
	ip := r.PathValue("ip")
	ex := lookedUp(ip)
	fail := func(message string) reply {
		return jsonReply(http.StatusOK, object{"status": "fail", "message": message, "query": ip})
	}
	f, ok := factsOf(ip)
	refusal := textReply(http.StatusForbidden, "invalid key")
	switch {
	case r.URL.Query().Get("key") != IPAPIKey:
		return ex.refuse(refusal)
	case !ok:
		return ex.refuse(fail("invalid query"))
	}
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"status": "success", "country": f.country, "countryCode": f.code, "region": "", "regionName": "", "city": f.city, "zip": "",
			"lat": f.latitude, "lon": f.longitude, "timezone": f.timezone, "isp": f.network, "org": f.network,
			"as": f.as() + " " + f.network, "query": ip,
		}),
		Rejected:           fail("invalid query"),
		CredentialsRefused: refusal,
		UnknownAddress:     fail("reserved range"),
		QuotaUsed:          textReply(http.StatusTooManyRequests, ""),
	}
	return ex
}
