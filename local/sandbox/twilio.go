package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

// What the sandbox's Twilio accepts.
const (
	TwilioAccountSID = "AC00000000000000000000000000000001"
	TwilioAuthToken  = "twilio-sandbox-auth-token"
)

var e164 = regexp.MustCompile(`^\+[1-9]\d{6,14}$`)

// twilio speaks Twilio's Messages API: Basic credentials, a form, JSON answers.
func twilio() vendor {
	const account = "/2010-04-01/Accounts/{account}"
	return vendor{
		name:     "twilio",
		secrets:  []string{"account", "account_sid"},
		accepted: []string{TwilioAccountSID, TwilioAuthToken},
		routes: []route{
			{"POST " + account + "/Messages.json", twilioSend},
			{"GET " + account + "/Balance.json", twilioBalance},
		},
		unknown: twilioError(http.StatusNotFound, 20404, "The requested resource was not found"),
	}
}

func twilioError(status, code int, message string) reply {
	return jsonReply(status, object{
		"code": code, "message": message, "more_info": "https://www.twilio.com/docs/errors/" + strconv.Itoa(code), "status": status,
	})
}

// twilioRefusal is the answer to wrong credentials, nil for the right ones.
func twilioRefusal(r *request) *reply {
	refusal := twilioError(http.StatusUnauthorized, 20003, "Authenticate")
	if !r.basic(TwilioAccountSID, TwilioAuthToken) {
		return &refusal
	}
	if r.PathValue("account") != TwilioAccountSID {
		refusal = twilioError(http.StatusNotFound, 20404, "The requested resource was not found")
		return &refusal
	}
	return nil
}

func twilioSend(r *request) exchange {
	in, err := url.ParseQuery(string(r.body))
	ex := exchange{operation: "send", to: in["To"]}
	if ex.refusal = twilioRefusal(r); ex.refusal != nil {
		return ex
	}
	bad := func(code int, message string) exchange {
		return ex.refuse(twilioError(http.StatusBadRequest, code, message))
	}
	switch {
	case err != nil || missing(in, "To") != "":
		return bad(21604, "A 'To' phone number is required.")
	case len(ex.to) > 1 || mismatch(e164, ex.to) != "":
		return bad(21211, fmt.Sprintf("Invalid 'To' Phone Number: %s", in.Get("To")))
	case in.Get("From") == "" && in.Get("MessagingServiceSid") == "":
		return bad(21603, "A 'From' phone number is required.")
	case in.Get("Body") == "":
		return bad(21602, "Message body is required.")
	case utf8.RuneCountInString(in.Get("Body")) > 1600:
		return bad(21617, "The concatenated message body exceeds the 1600 character limit.")
	}
	sid := make([]byte, 16)
	_, _ = rand.Read(sid)
	id := "SM" + hex.EncodeToString(sid)
	message := object{
		"sid": id, "account_sid": TwilioAccountSID, "status": "queued", "to": in.Get("To"), "from": nil, "body": in.Get("Body"),
		"messaging_service_sid": nil, "num_segments": strconv.Itoa(parts(in.Get("Body"))), "num_media": "0", "price": nil,
		"price_unit": "USD", "error_code": nil, "error_message": nil, "direction": "outbound-api",
		"date_created": time.Now().UTC().Format(time.RFC1123Z), "uri": "/2010-04-01/Accounts/" + TwilioAccountSID + "/Messages/" + id + ".json",
	}
	for field, parameter := range map[string]string{"from": "From", "messaging_service_sid": "MessagingServiceSid"} {
		if value := in.Get(parameter); value != "" {
			message[field] = value
		}
	}
	ex.replies = map[Outcome]reply{
		Accepted:           jsonReply(http.StatusCreated, message),
		Rejected:           twilioError(http.StatusBadRequest, 21610, "Attempt to send to unsubscribed recipient"),
		CredentialsRefused: twilioError(http.StatusUnauthorized, 20003, "Authenticate"),
	}
	return ex
}

func twilioBalance(r *request) exchange {
	ex := exchange{operation: "balance", refusal: twilioRefusal(r)}
	ex.replies = map[Outcome]reply{
		Accepted:           jsonReply(http.StatusOK, object{"account_sid": TwilioAccountSID, "balance": "12.05", "currency": "USD"}),
		CredentialsRefused: twilioError(http.StatusUnauthorized, 20003, "Authenticate"),
	}
	return ex
}
