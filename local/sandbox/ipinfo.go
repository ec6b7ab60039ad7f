package sandbox

import "net/http"

// IPInfoToken is the token that the sandbox's ipinfo.io accepts.
const IPInfoToken = "ipinfo-sandbox-token"

// ipInfo simulates ipinfo.io's Plus API.
func ipInfo() vendor { return ipInfoVendor("ipinfo", "GET /lookup/{ip}", ipInfoPlus) }

// ipInfoLite simulates ipinfo.io's Lite API, with the token of the other API.
func ipInfoLite() vendor { return ipInfoVendor("ipinfo-lite", "GET /lite/{ip}", ipInfoCountry) }

// ipInfoVendor returns an API with the token as a bearer, as a Basic user or as a parameter.
func ipInfoVendor(name, pattern string, found func(string, facts) object) vendor {
	serve := lookUp(func(_ *request, ip string, f facts) responses {
		return responses{
			Accepted:           success(found(ip, f)),
			CredentialsRefused: ipInfoError(http.StatusForbidden, "Unknown token", "Please ensure you've entered your token correctly."),
			invalidAddress:     ipInfoError(http.StatusNotFound, "Wrong ip", "Please provide a valid IP address"),
			Rejected:           jsonResponse(http.StatusBadRequest, object{"title": "Bad request", "message": "The request cannot be served."}),
			UnknownAddress:     success(object{"ip": ip, "bogon": true}),
			QuotaUsed:          ipInfoError(http.StatusTooManyRequests, "Rate limit exceeded", "You've hit the monthly limit of your plan."),
		}
	})
	authorized := func(r *request) bool {
		return r.Header.Get("Authorization") == "Bearer "+IPInfoToken || r.basic(IPInfoToken, "") || r.URL.Query().Get("token") == IPInfoToken
	}
	return vendor{
		name:     name,
		secrets:  []string{"token"},
		accepted: []string{IPInfoToken},
		routes:   []route{{pattern, serve.authorizedBy(authorized)}},
		unknown:  ipInfoError(http.StatusBadRequest, "Wrong module", "The requested module does not exist."),
	}
}

func ipInfoError(status int, title, message string) response {
	return jsonResponse(status, object{"status": status, "error": object{"title": title, "message": message}})
}

func ipInfoPlus(ip string, f facts) object {
	kind := "isp"
	if f.hosting {
		kind = "hosting"
	}
	return object{
		"ip": ip,
		"geo": object{
			"city": f.city, "region": "", "region_code": "", "country": f.country, "country_code": f.code, "continent": "",
			"continent_code": "", "latitude": f.latitude, "longitude": f.longitude, "timezone": f.timezone, "postal_code": "",
		},
		"as":           object{"asn": f.as(), "name": f.network, "domain": "", "type": kind},
		"anonymous":    object{"name": "", "is_proxy": f.proxy, "is_relay": f.relay, "is_tor": f.tor, "is_vpn": f.vpn},
		"is_anonymous": f.vpn || f.proxy || f.tor || f.relay, "is_anycast": false, "is_hosting": f.hosting,
		"is_mobile": false, "is_satellite": false,
	}
}

func ipInfoCountry(ip string, f facts) object {
	return object{
		"ip": ip, "asn": f.as(), "as_name": f.network, "as_domain": "", "country_code": f.code, "country": f.country,
		"continent_code": "", "continent": "",
	}
}
