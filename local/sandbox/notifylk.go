package sandbox

import (
	"net/http"
	"regexp"
	"unicode/utf8"
)

var (
	elevenDigits  = regexp.MustCompile(`^94\d{9}$`)
	notifyRefusal = errorResponse(http.StatusUnauthorized, "Invalid user ID or API key")
	notifyFunds   = reply(`200 {"data":{"acc_balance":3500,"active":true},"status":"success"}`)
)

// notifylk simulates Notify.lk's API: parameters in the query, a form or JSON; one recipient a call; no message IDs.
func notifylk() vendor {
	return vendor{
		name: "notifylk", secrets: []string{"user_id", "api_key"}, accepted: []string{NotifyAPIKey},
		routes: []route{
			{"GET /api/v1/send", notifySend},
			{"POST /api/v1/send", notifySend},
			{"GET /api/v1/status", balance(notifyAuthorized, notifyFunds, notifyRefusal)},
		},
		unknown: errorResponse(http.StatusNotFound, "Not found"),
	}
}

func notifyAuthorized(r *request) bool {
	in := r.parameters()
	return in.Get("user_id") == NotifyUserID && in.Get("api_key") == NotifyAPIKey
}

func notifySend(r *request) result {
	in := r.parameters()
	to, message := in["to"], in.Get("message")
	absent := missing(in, "sender_id", "to", "message")
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!notifyAuthorized(r), notifyRefusal},
			{absent != "", errorResponse(http.StatusOK, "The "+absent+" field is required")},
			{mismatch(elevenDigits, to) != "", errorResponse(http.StatusOK, "Invalid number")},
			{utf8.RuneCountInString(message) > 621, errorResponse(http.StatusOK, "The message is too long")},
			{!gsm(message) && in.Get("type") != "unicode", errorResponse(http.StatusOK, "Unicode messages need type=unicode")},
		},
		responses: responses{
			Accepted:           success(object{"status": "success", "data": "Sent"}),
			Rejected:           errorResponse(http.StatusOK, "The number is blocked"),
			CredentialsRefused: notifyRefusal,
		},
	}
}
