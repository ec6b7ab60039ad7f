package sandbox

import (
	"crypto/rand"
	"math"
	"net/http"
)

// The API user that the sandbox's Hutch BSMS accepts.
const (
	HutchUsername = "hutch-sandbox-user"
	HutchPassword = "hutch-sandbox-password"
)

// hutch simulates Hutch BSMS' API v1: a login for a token, then JSON with recipients joined by commas.
func hutch() vendor {
	var issued tokens
	return vendor{
		name:     "hutch",
		secrets:  []string{"username", "password", "accessToken", "refreshToken"},
		accepted: []string{HutchUsername, HutchPassword},
		routes: []route{
			{"POST /api/login", func(r *request) result { return hutchLogin(r, &issued) }},
			{"POST /api/sendsms", func(r *request) result { return hutchSend(r, issued.accept(r)) }},
		},
		unknown: messageResponse(http.StatusNotFound, "Not Found"),
	}
}

func hutchLogin(r *request, issued *tokens) result {
	refusal := messageResponse(http.StatusUnauthorized, "Bad credentials")
	token := issued.logIn(r, HutchUsername, HutchPassword, math.MaxInt64) // the vendor publishes no life
	return result{
		operation: "login",
		problems:  []problem{{token == "" || r.Header.Get("X-API-VERSION") != "v1", refusal}},
		responses: responses{
			Accepted: success(object{"accessToken": token, "refreshToken": "sandbox." + rand.Text()}),
			Rejected: refusal, CredentialsRefused: refusal,
		},
	}
}

func hutchSend(r *request, authorized bool) result {
	var in struct{ CampaignName, Mask, Numbers, Content string }
	valid := r.json(&in)
	to := split(in.Numbers)
	tokenRefused := messageResponse(http.StatusUnauthorized, "Token is invalid or has expired")
	wrong := mismatch(elevenDigits, to)
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!authorized, tokenRefused},
			{r.Header.Get("X-API-VERSION") != "v1", messageResponse(http.StatusBadRequest, "X-API-VERSION is missing")},
			{!valid || len(to) == 0 || in.Content == "" || in.CampaignName == "", messageResponse(http.StatusBadRequest, "Invalid request")},
			{wrong != "", messageResponse(http.StatusBadRequest, "Invalid number "+wrong)},
			{in.Mask == "" || len(in.Mask) > 11, messageResponse(http.StatusBadRequest, "Invalid mask")},
		},
		responses: responses{
			Accepted:           success(object{"serverRef": messageID()}),
			Rejected:           messageResponse(http.StatusBadRequest, "Mask is not approved"),
			CredentialsRefused: messageResponse(http.StatusForbidden, "The account may not send"),
			TokenRefused:       tokenRefused,
		},
	}
}
