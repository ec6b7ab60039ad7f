package sandbox

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// TextLKToken is what the sandbox's Text.lk accepts.
const TextLKToken = "1000|textlk-sandbox-token"

// textlk speaks Text.lk's API v3: a bearer token, JSON, several recipients joined by commas.
func textlk() vendor {
	return vendor{
		name:     "textlk",
		secrets:  []string{"api_token"},
		accepted: []string{TextLKToken},
		routes:   []route{{"POST /api/v3/sms/send", textlkSend}, {"GET /api/v3/balance", textlkBalance}},
		unknown:  textlkError(http.StatusNotFound, "Not found"),
	}
}

func textlkError(status int, message string) reply {
	return jsonReply(status, object{"status": "error", "message": message})
}

var textlkRefusal = textlkError(http.StatusUnauthorized, "Unauthenticated.")

func textlkAccount(r *request) bool { return r.Header.Get("Authorization") == "Bearer "+TextLKToken }

func textlkSend(r *request) exchange {
	var in struct {
		Recipient string `json:"recipient"`
		SenderID  string `json:"sender_id"`
		Type      string `json:"type"`
		Message   string `json:"message"`
	}
	valid := r.json(&in)
	ex := exchange{operation: "send"}
	if in.Recipient != "" {
		ex.to = strings.Split(in.Recipient, ",")
	}
	switch {
	case !textlkAccount(r):
		return ex.refuse(textlkRefusal)
	case !valid:
		return ex.refuse(textlkError(http.StatusBadRequest, "The request is no valid JSON"))
	case len(ex.to) == 0:
		return ex.refuse(textlkError(http.StatusOK, "The recipient field is required."))
	case mismatch(elevenDigits, ex.to) != "":
		return ex.refuse(textlkError(http.StatusOK, "Invalid phone number: "+mismatch(elevenDigits, ex.to)))
	case in.SenderID == "" || len(in.SenderID) > 11:
		return ex.refuse(textlkError(http.StatusOK, "The sender id must be 1 to 11 characters."))
	case in.Type != "plain" && in.Type != "unicode":
		return ex.refuse(textlkError(http.StatusOK, "The selected type is invalid."))
	case in.Message == "":
		return ex.refuse(textlkError(http.StatusOK, "The message field is required."))
	}
	size := parts(in.Message)
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"status": "success", "message": "Your message was successfully delivered",
			"data": object{
				"uid": strings.ReplaceAll(uuid.NewString(), "-", "")[:13], "to": in.Recipient, "from": in.SenderID, "message": in.Message,
				"status": "Delivered", "cost": strconv.Itoa(size * len(ex.to)), "sms_count": size,
			},
		}),
		Rejected:           textlkError(http.StatusOK, "Sender ID is not authorised"),
		CredentialsRefused: textlkRefusal,
	}
	return ex
}

func textlkBalance(r *request) exchange {
	ex := exchange{operation: "balance"}
	if !textlkAccount(r) {
		return ex.refuse(textlkRefusal)
	}
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"status": "success", "data": object{"remaining_balance": "950", "expired_on": "8th Sep 30, 4:44 PM"},
		}),
		CredentialsRefused: textlkRefusal,
	}
	return ex
}
