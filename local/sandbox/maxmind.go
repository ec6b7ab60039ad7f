package sandbox

import "net/http"

// What the sandbox's MaxMind accepts.
const (
	MaxMindAccountID  = "100001"
	MaxMindLicenseKey = "maxmind-sandbox-license-key"
)

// maxMind speaks MaxMind's GeoIP web service: City, and Insights with the anonymizer.
func maxMind() vendor {
	return vendor{
		name:     "maxmind",
		accepted: []string{MaxMindLicenseKey},
		routes: []route{
			{"GET /geoip/v2.1/city/{ip}", func(r *request) exchange { return maxMindLookup(r, false) }},
			{"GET /geoip/v2.1/insights/{ip}", func(r *request) exchange { return maxMindLookup(r, true) }},
		},
		unknown: textReply(http.StatusNotFound, "Not Found"),
	}
}

func maxMindError(status int, code, message string) reply {
	return jsonReply(status, object{"code": code, "error": message})
}

func maxMindLookup(r *request, insights bool) exchange {
	ip := r.PathValue("ip")
	ex := lookedUp(ip)
	f, ok := factsOf(ip)
	refusal := maxMindError(http.StatusUnauthorized, "AUTHORIZATION_INVALID", "You have supplied an invalid MaxMind account ID and/or license key in the Authorization header.")
	switch {
	case !r.basic(MaxMindAccountID, MaxMindLicenseKey):
		return ex.refuse(refusal)
	case !ok:
		return ex.refuse(maxMindError(http.StatusBadRequest, "IP_ADDRESS_INVALID", "The value "+ip+" is not a valid IP address."))
	}
	answer := object{
		"city":     object{"geoname_id": 1, "names": object{"en": f.city}},
		"country":  object{"iso_code": f.code, "geoname_id": 2, "names": object{"en": f.country}},
		"location": object{"latitude": f.latitude, "longitude": f.longitude, "time_zone": f.timezone, "accuracy_radius": 20},
		"traits": object{
			"ip_address": ip, "network": ip + "/32", "autonomous_system_number": f.asn,
			"autonomous_system_organization": f.network, "isp": f.network, "organization": f.network,
		},
		"maxmind": object{"queries_remaining": 54321},
	}
	if insights {
		anonymizer := object{}
		for name, is := range map[string]bool{
			"is_anonymous": f.vpn || f.proxy || f.tor, "is_anonymous_vpn": f.vpn, "is_public_proxy": f.proxy,
			"is_tor_exit_node": f.tor, "is_hosting_provider": f.hosting,
		} {
			if is { // the vendor leaves false out
				anonymizer[name] = true
			}
		}
		if len(anonymizer) > 0 {
			answer["anonymizer"] = anonymizer
		}
	}
	ex.replies = map[Outcome]reply{
		Accepted:           jsonReply(http.StatusOK, answer),
		Rejected:           maxMindError(http.StatusBadRequest, "IP_ADDRESS_INVALID", "The value is not a valid IP address."),
		CredentialsRefused: refusal,
		UnknownAddress:     maxMindError(http.StatusNotFound, "IP_ADDRESS_NOT_FOUND", "The address "+ip+" is not in our database."),
		QuotaUsed:          maxMindError(http.StatusPaymentRequired, "INSUFFICIENT_FUNDS", "The license key you have provided is out of queries."),
	}
	return ex
}
