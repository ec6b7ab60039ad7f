package sandbox

import (
	"net/http"
	"regexp"
	"unicode/utf8"
)

// What the sandbox's Notify.lk accepts.
const (
	NotifyUserID = "10001"
	NotifyAPIKey = "notifylk-sandbox-api-key"
)

var (
	elevenDigits = regexp.MustCompile(`^94\d{9}$`)
	someText     = regexp.MustCompile(`(?s).`)
)

// notifylk speaks Notify.lk's API: parameters in the query, a form or JSON; one recipient a call; no message IDs.
func notifylk() vendor {
	return vendor{
		name:     "notifylk",
		secrets:  []string{"user_id", "api_key"},
		accepted: []string{NotifyAPIKey},
		routes: []route{
			{"GET /api/v1/send", notifySend}, {"POST /api/v1/send", notifySend},
			{"GET /api/v1/status", notifyStatus},
		},
		unknown: notifyError(http.StatusNotFound, "Not found"),
	}
}

func notifyError(status int, message string) reply {
	return jsonReply(status, object{"status": "error", "message": message})
}

var notifyRefusal = notifyError(http.StatusUnauthorized, "Invalid user ID or API key")

func notifyAccount(r *request) bool {
	in := r.parameters()
	return in.Get("user_id") == NotifyUserID && in.Get("api_key") == NotifyAPIKey
}

func notifySend(r *request) exchange {
	in := r.parameters()
	ex := exchange{operation: "send", to: in["to"]}
	absent := missing(in, "sender_id", "to", "message")
	switch {
	case !notifyAccount(r):
		return ex.refuse(notifyRefusal)
	case absent != "":
		return ex.refuse(notifyError(http.StatusOK, "The "+absent+" field is required"))
	case mismatch(elevenDigits, ex.to) != "":
		return ex.refuse(notifyError(http.StatusOK, "Invalid number"))
	case utf8.RuneCountInString(in.Get("message")) > 621:
		return ex.refuse(notifyError(http.StatusOK, "The message is too long"))
	case !gsm(in.Get("message")) && in.Get("type") != "unicode":
		return ex.refuse(notifyError(http.StatusOK, "Unicode messages need type=unicode"))
	}
	ex.replies = map[Outcome]reply{
		Accepted:           jsonReply(http.StatusOK, object{"status": "success", "data": "Sent"}),
		Rejected:           notifyError(http.StatusOK, "The number is blocked"),
		CredentialsRefused: notifyRefusal,
	}
	return ex
}

func notifyStatus(r *request) exchange {
	ex := exchange{operation: "balance"}
	if !notifyAccount(r) {
		return ex.refuse(notifyRefusal)
	}
	ex.replies = map[Outcome]reply{
		Accepted:           jsonReply(http.StatusOK, object{"status": "success", "data": object{"active": true, "acc_balance": 3500.00}}),
		CredentialsRefused: notifyRefusal,
	}
	return ex
}
