package sandbox

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// TextLKToken is the token that the sandbox's Text.lk accepts.
const TextLKToken = "1000|textlk-sandbox-token"

var (
	textlkRefusal = textlkError(http.StatusUnauthorized, "Unauthenticated.")
	textlkFunds   = success(object{"status": "success", "data": object{"remaining_balance": "950", "expired_on": "8th Sep 30, 4:44 PM"}})
)

// textlk simulates Text.lk's API v3: a bearer token, JSON, several recipients joined by commas.
func textlk() vendor {
	return vendor{
		name:     "textlk",
		secrets:  []string{"api_token"},
		accepted: []string{TextLKToken},
		routes: []route{
			{"POST /api/v3/sms/send", textlkSend},
			{"GET /api/v3/balance", balance(textlkAuthorized, textlkFunds, textlkRefusal)},
		},
		unknown: textlkError(http.StatusNotFound, "Not found"),
	}
}

func textlkError(status int, message string) response {
	return jsonResponse(status, object{"status": "error", "message": message})
}

func textlkAuthorized(r *request) bool { return r.Header.Get("Authorization") == "Bearer "+TextLKToken }

func textlkSend(r *request) result {
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
			{!textlkAuthorized(r), textlkRefusal},
			{!valid, textlkError(http.StatusBadRequest, "The request is no valid JSON")},
			{len(to) == 0, textlkError(http.StatusOK, "The recipient field is required.")},
			{wrong != "", textlkError(http.StatusOK, "Invalid phone number: "+wrong)},
			{in.SenderID == "" || len(in.SenderID) > 11, textlkError(http.StatusOK, "The sender id must be 1 to 11 characters.")},
			{in.Type != "plain" && in.Type != "unicode", textlkError(http.StatusOK, "The selected type is invalid.")},
			{in.Message == "", textlkError(http.StatusOK, "The message field is required.")},
		},
		responses: responses{
			Accepted: success(object{
				"status": "success", "message": "Your message was successfully delivered",
				"data": object{
					"uid": strings.ReplaceAll(uuid.NewString(), "-", "")[:13], "to": in.Recipient, "from": in.SenderID, "message": in.Message,
					"status": "Delivered", "cost": strconv.Itoa(size * len(to)), "sms_count": size,
				},
			}),
			Rejected:           textlkError(http.StatusOK, "Sender ID is not authorised"),
			CredentialsRefused: textlkRefusal,
		},
	}
}
