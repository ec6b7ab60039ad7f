package sandbox

import (
	"crypto/rand"
	"math"
	"net/http"
)

// hutch simulates Hutch BSMS' API v1: a login for a token, then JSON with recipients joined by commas.
func hutch() vendor {
	var issued tokens
	return vendor{
		name: "hutch", secrets: []string{"username", "password", "accessToken", "refreshToken"},
		accepted: []string{HutchUsername, HutchPassword}, unknown: reply(`404 {"message":"Not Found"}`),
		routes: []route{
			{"POST /api/login", func(r *request) result { return hutchLogin(r, &issued) }},
			{"POST /api/sendsms", func(r *request) result { return hutchSend(r, issued.accept(r)) }},
		},
	}
}

func hutchLogin(r *request, issued *tokens) result {
	refusal := reply(`401 {"message":"Bad credentials"}`)
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
	tokenRefused := reply(`401 {"message":"Token is invalid or has expired"}`)
	invalid := func(message string) response { return jsonResponse(http.StatusBadRequest, object{"message": message}) }
	wrong := mismatch(elevenDigits, to)
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!authorized, tokenRefused},
			{r.Header.Get("X-API-VERSION") != "v1", invalid("X-API-VERSION is missing")},
			{!valid || len(to) == 0 || in.Content == "" || in.CampaignName == "", invalid("Invalid request")},
			{wrong != "", invalid("Invalid number " + wrong)},
			{in.Mask == "" || len(in.Mask) > 11, invalid("Invalid mask")},
		},
		responses: responses{
			Accepted:           success(object{"serverRef": messageID()}),
			Rejected:           invalid("Mask is not approved"),
			CredentialsRefused: reply(`403 {"message":"The account may not send"}`),
			TokenRefused:       tokenRefused,
		},
	}
}
