package sandbox

import (
	"net/http"
	"strconv"
)

// IP2LocationKey is the key that the sandbox's IP2Location.io accepts.
const IP2LocationKey = "ip2location-sandbox-key"

// ip2Location simulates IP2Location.io's geolocation API with a Security plan.
func ip2Location() vendor {
	return keyed("ip2location", "key", IP2LocationKey, "GET /{$}",
		textResponse(http.StatusNotFound, "Not Found"), ip2LocationLookup)
}

func ip2LocationError(status, code int, message string) response {
	return jsonResponse(status, object{"error": object{"error_code": code, "error_message": message}})
}

func ip2LocationLookup(_ *request, ip string, f facts) responses {
	kind := "-"
	for name, is := range map[string]bool{"VPN": f.vpn, "TOR": f.tor, "PUB": f.proxy, "CPN": f.relay, "DCH": f.hosting} {
		if is {
			kind = name
		}
	}
	return responses{
		Accepted: success(object{
			"ip": ip, "country_code": f.code, "country_name": f.country, "region_name": "-", "city_name": f.city, "latitude": f.latitude,
			"longitude": f.longitude, "zip_code": "-", "time_zone": "+05:30", "asn": strconv.Itoa(f.asn), "as": f.network, "isp": f.network,
			"is_proxy": f.vpn || f.proxy || f.tor || f.relay, "fraud_score": 0,
			"proxy": object{
				"last_seen": 1, "proxy_type": kind, "threat": "-", "provider": "-", "is_vpn": f.vpn, "is_tor": f.tor, "is_data_center": f.hosting,
				"is_public_proxy": f.proxy && !f.residential, "is_web_proxy": false, "is_web_crawler": false, "is_residential_proxy": f.residential,
				"is_consumer_privacy_network": f.relay, "is_enterprise_private_network": false, "is_spammer": false, "is_scanner": false,
				"is_botnet": false, "is_bogon": false,
			},
		}),
		CredentialsRefused: ip2LocationError(http.StatusUnauthorized, 10001, "Invalid API key or insufficient credit."),
		invalidAddress:     ip2LocationError(http.StatusBadRequest, 10006, "Invalid IP address."),
		Rejected:           ip2LocationError(http.StatusBadRequest, 10006, "Invalid IP address."),
		UnknownAddress: success(object{
			"ip": ip, "country_code": "-", "country_name": "-", "city_name": "-", "asn": "-", "as": "-", "isp": "-", "is_proxy": false,
			"proxy": object{"proxy_type": "-", "is_vpn": false, "is_tor": false, "is_data_center": false, "is_bogon": true},
		}),
		QuotaUsed: textResponse(http.StatusTooManyRequests, ""),
	}
}
