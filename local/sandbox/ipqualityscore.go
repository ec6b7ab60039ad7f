package sandbox

import "net/http"

// IPQualityScoreKey is the key that the sandbox's IPQualityScore accepts.
const IPQualityScoreKey = "ipqualityscore-sandbox-key"

// ipQualityScore simulates IPQualityScore's proxy detection: the key in the path, failures with status 200.
func ipQualityScore() vendor {
	return keyed("ipqualityscore", "key", IPQualityScoreKey, "GET /api/json/ip/{key}/{ip}",
		textResponse(http.StatusNotFound, "Not Found"), ipQualityScoreLookup)
}

func ipQualityScoreLookup(_ *request, ip string, f facts) responses {
	fail := func(message string) response {
		return success(object{"success": false, "message": message, "request_id": messageID()})
	}
	invalid := fail("Invalid IPv4 address, IPv6 address or hostname. Please check the input and try again.")
	kind := "Residential"
	if f.hosting {
		kind = "Data Center"
	}
	return responses{
		Accepted: success(object{
			"success": true, "message": "Success", "fraud_score": 0, "country_code": f.code, "region": "", "city": f.city, "ISP": f.network,
			"ASN": f.asn, "organization": f.network, "latitude": f.latitude, "longitude": f.longitude, "is_crawler": false,
			"timezone": f.timezone, "mobile": false, "host": ip, "proxy": f.proxy || f.vpn || f.tor, "vpn": f.vpn, "tor": f.tor,
			"active_vpn": false, "active_tor": false, "recent_abuse": false, "bot_status": false, "connection_type": kind,
			"abuse_velocity": "none", "request_id": messageID(),
		}),
		CredentialsRefused: fail("Invalid or unauthorized key. Please check the API key and try again."),
		invalidAddress:     invalid,
		Rejected:           invalid,
		UnknownAddress:     invalid,
		QuotaUsed:          fail("You have exceeded your request quota of 35 per day. Please upgrade to increase your request quota."),
	}
}
