package sandbox

import (
	"net/http"
	"strings"
)

// The account that the sandbox's MaxMind accepts.
const (
	MaxMindAccountID  = "100001"
	MaxMindLicenseKey = "maxmind-sandbox-license-key"
)

// maxMind simulates MaxMind's GeoIP web service: City, and Insights with the anonymizer.
func maxMind() vendor {
	serve := lookUp(maxMindLookup).authorizedBy(func(r *request) bool { return r.basic(MaxMindAccountID, MaxMindLicenseKey) })
	return vendor{
		name:     "maxmind",
		accepted: []string{MaxMindLicenseKey},
		routes:   []route{{"GET /geoip/v2.1/city/{ip}", serve}, {"GET /geoip/v2.1/insights/{ip}", serve}},
		unknown:  textResponse(http.StatusNotFound, "Not Found"),
	}
}

func maxMindError(status int, code, message string) response {
	return jsonResponse(status, object{"code": code, "error": message})
}

func maxMindLookup(r *request, ip string, f facts) responses {
	body := object{
		"city":     object{"geoname_id": 1, "names": object{"en": f.city}},
		"country":  object{"iso_code": f.code, "geoname_id": 2, "names": object{"en": f.country}},
		"location": object{"latitude": f.latitude, "longitude": f.longitude, "time_zone": f.timezone, "accuracy_radius": 20},
		"traits": object{
			"ip_address": ip, "network": ip + "/32", "autonomous_system_number": f.asn,
			"autonomous_system_organization": f.network, "isp": f.network, "organization": f.network,
		},
		"maxmind": object{"queries_remaining": 54321},
	}
	anonymizer := object{} // the vendor omits false members
	public := f.proxy && !f.residential
	for name, is := range map[string]bool{
		"is_anonymous": f.vpn || public || f.tor, "is_anonymous_vpn": f.vpn, "is_public_proxy": public,
		"is_tor_exit_node": f.tor, "is_hosting_provider": f.hosting,
	} {
		if is {
			anonymizer[name] = true
		}
	}
	if f.residential { // known to the feed alone
		anonymizer["residential"] = object{"confidence": 80, "network_last_seen": "2026-01-01", "provider_name": "Example"}
	}
	if strings.HasPrefix(r.URL.Path, "/maxmind/geoip/v2.1/insights/") && len(anonymizer) > 0 {
		body["anonymizer"] = anonymizer
	}
	return responses{
		Accepted:           success(body),
		CredentialsRefused: maxMindError(http.StatusUnauthorized, "AUTHORIZATION_INVALID", "You have supplied an invalid MaxMind account ID and/or license key in the Authorization header."),
		invalidAddress:     maxMindError(http.StatusBadRequest, "IP_ADDRESS_INVALID", "The value "+ip+" is not a valid IP address."),
		Rejected:           maxMindError(http.StatusBadRequest, "IP_ADDRESS_INVALID", "The value is not a valid IP address."),
		UnknownAddress:     maxMindError(http.StatusNotFound, "IP_ADDRESS_NOT_FOUND", "The address "+ip+" is not in our database."),
		QuotaUsed:          maxMindError(http.StatusPaymentRequired, "INSUFFICIENT_FUNDS", "The license key you have provided is out of queries."),
	}
}
