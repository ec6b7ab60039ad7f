package sandbox

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

var (
	e164           = regexp.MustCompile(`^\+[1-9]\d{6,14}$`)
	twilioRefusal  = twilioError(http.StatusUnauthorized, 20003, "Authenticate")
	twilioFunds    = reply(`200 {"account_sid":"` + TwilioAccountSID + `","balance":"12.05","currency":"USD"}`)
	twilioNotFound = twilioError(http.StatusNotFound, 20404, "The requested resource was not found")
)

// twilio simulates Twilio's Messages API: Basic credentials, a form, JSON responses.
func twilio() vendor {
	const account = "/2010-04-01/Accounts/{account}"
	return vendor{
		name: "twilio", secrets: []string{"account", "account_sid"}, accepted: []string{TwilioAccountSID, TwilioAuthToken},
		routes: []route{
			{"POST " + account + "/Messages.json", twilioSend},
			{"GET " + account + "/Balance.json", func(r *request) result {
				return result{operation: "balance", problems: twilioProblems(r), responses: responses{
					Accepted: twilioFunds, CredentialsRefused: twilioRefusal,
				}}
			}},
		},
		unknown: twilioNotFound,
	}
}

func twilioError(status, code int, message string) response {
	return jsonResponse(status, object{
		"code": code, "message": message, "more_info": "https://www.twilio.com/docs/errors/" + strconv.Itoa(code), "status": status,
	})
}

// twilioProblems returns the problems with a request's credentials.
func twilioProblems(r *request) []problem {
	return []problem{
		{!r.basic(TwilioAccountSID, TwilioAuthToken), twilioRefusal},
		{r.PathValue("account") != TwilioAccountSID, twilioNotFound},
	}
}

func twilioSend(r *request) result {
	in, err := url.ParseQuery(string(r.body))
	to, body := in["To"], in.Get("Body")
	bad := func(holds bool, code int, message string) problem {
		return problem{holds, twilioError(http.StatusBadRequest, code, message)}
	}
	id := "SM" + strings.ReplaceAll(uuid.NewString(), "-", "")
	message := object{
		"sid": id, "account_sid": TwilioAccountSID, "status": "queued", "to": in.Get("To"), "from": nil, "body": body,
		"messaging_service_sid": nil, "num_segments": strconv.Itoa(segments(body)), "num_media": "0", "price": nil,
		"price_unit": "USD", "error_code": nil, "error_message": nil, "direction": "outbound-api",
		"date_created": time.Now().UTC().Format(time.RFC1123Z), "uri": "/2010-04-01/Accounts/" + TwilioAccountSID + "/Messages/" + id + ".json",
	}
	for field, parameter := range map[string]string{"from": "From", "messaging_service_sid": "MessagingServiceSid"} {
		if value := in.Get(parameter); value != "" {
			message[field] = value
		}
	}
	return result{
		operation: "send", to: to,
		problems: append(twilioProblems(r),
			bad(err != nil || missing(in, "To") != "", 21604, "A 'To' phone number is required."),
			bad(len(to) > 1 || mismatch(e164, to) != "", 21211, "Invalid 'To' Phone Number: "+in.Get("To")),
			bad(in.Get("From") == "" && in.Get("MessagingServiceSid") == "", 21603, "A 'From' phone number is required."),
			bad(body == "", 21602, "Message body is required."),
			bad(utf8.RuneCountInString(body) > 1600, 21617, "The concatenated message body exceeds the 1600 character limit.")),
		responses: responses{
			Accepted:           jsonResponse(http.StatusCreated, message),
			Rejected:           twilioError(http.StatusBadRequest, 21610, "Attempt to send to unsubscribed recipient"),
			CredentialsRefused: twilioRefusal,
		},
	}
}
