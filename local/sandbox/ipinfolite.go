package sandbox

import "net/http"

// ipInfoLite simulates ipinfo.io's Lite API, with the token of the other API.
func ipInfoLite() vendor {
	return vendor{
		name:     "ipinfo-lite",
		secrets:  []string{"token"},
		accepted: []string{IPInfoToken},
		routes:   []route{{"GET /lite/{ip}", ipInfoLiteLookup}},
		unknown:  ipInfoError(http.StatusBadRequest, "Wrong module", "The requested module does not exist."),
	}
}

func ipInfoLiteLookup(r *request) result {
	ip := r.PathValue("ip")
	return lookUp(ip, ipInfoAuthorized(r), ipInfoFailures(ip), func(f facts) object {
		return object{
			"ip": ip, "asn": f.as(), "as_name": f.network, "as_domain": "", "country_code": f.code, "country": f.country,
			"continent_code": "", "continent": "",
		}
	})
}
