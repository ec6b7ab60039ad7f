package sandbox

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

var (
	textlkRefusal = errorResponse(http.StatusUnauthorized, "Unauthenticated.")
	textlkFunds   = reply(`200 {"data":{"expired_on":"8th Sep 30, 4:44 PM","remaining_balance":"950"},"status":"success"}`)
)

// textlk simulates Text.lk's API v3: a bearer token, JSON, several recipients joined by commas.
func textlk() vendor { return ultimate("textlk", TextLKToken, "/api/v3") }

// ultimateSMS simulates another installation of the same software, whose endpoint is its whole API.
func ultimateSMS() vendor { return ultimate("ultimatesms", UltimateSMSToken, "") }

func ultimate(name, token, path string) vendor {
	authorized := func(r *request) bool { return r.Header.Get("Authorization") == "Bearer "+token }
	return vendor{
		name: name, secrets: []string{"api_token"}, accepted: []string{token},
		routes: []route{
			{"POST " + path + "/sms/send", func(r *request) result { return ultimateSend(r, authorized(r)) }},
			{"GET " + path + "/balance", balance(authorized, textlkFunds, textlkRefusal)},
		},
		unknown: errorResponse(http.StatusNotFound, "Not found"),
	}
}

func ultimateSend(r *request, authorized bool) result {
	var in struct {
		Recipient string `json:"recipient"`
		SenderID  string `json:"sender_id"`
		Type      string `json:"type"`
		Message   string `json:"message"`
	}
	valid := r.json(&in)
	to := split(in.Recipient)
	size, wrong := segments(in.Message), mismatch(elevenDigits, to)
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!authorized, textlkRefusal},
			{!valid, errorResponse(http.StatusBadRequest, "The request is no valid JSON")},
			{len(to) == 0, errorResponse(http.StatusOK, "The recipient field is required.")},
			{wrong != "", errorResponse(http.StatusOK, "Invalid phone number: "+wrong)},
			{in.SenderID == "" || len(in.SenderID) > 11, errorResponse(http.StatusOK, "The sender id must be 1 to 11 characters.")},
			{in.Type != "plain" && in.Type != "unicode", errorResponse(http.StatusOK, "The selected type is invalid.")},
			{in.Message == "", errorResponse(http.StatusOK, "The message field is required.")},
		},
		responses: responses{
			Accepted: success(object{
				"status": "success", "message": "Your message was successfully delivered",
				"data": object{
					"uid": strings.ReplaceAll(uuid.NewString(), "-", "")[:13], "to": in.Recipient, "from": in.SenderID, "message": in.Message,
					"status": "Delivered", "cost": strconv.Itoa(size * len(to)), "sms_count": size,
				},
			}),
			Rejected:           errorResponse(http.StatusOK, "Sender ID is not authorised"),
			CredentialsRefused: textlkRefusal,
		},
	}
}
