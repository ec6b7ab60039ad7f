package sandbox

import (
	"net/http"
	"regexp"
)

// dialogInvalidKey is the code of the URL method for a wrong key.
const dialogInvalidKey = "2007"

var dialogNumber = regexp.MustCompile(`^(?:0|94)?7\d{8}$`)

// dialog simulates Dialog eSMS's URL method: GET, the key in the query, a code as plain text.
func dialog() vendor {
	return vendor{
		name: "dialog", secrets: []string{"esmsqk"}, accepted: []string{DialogKey}, unknown: reply("404 2002"),
		routes: []route{
			{"GET /api/v1/message-via-url/create/url-campaign", dialogSend},
			{"GET /api/v1/message-via-url/check/balance", balance(dialogAuthorized, dialogCode("1|4500.00"), dialogCode(dialogInvalidKey))},
		},
	}
}

func dialogCode(code string) response { return response{http.StatusOK, plainText, []byte(code)} }

func dialogAuthorized(r *request) bool { return r.URL.Query().Get("esmsqk") == DialogKey }

func dialogSend(r *request) result {
	in := r.URL.Query()
	source := in.Get("source_address")
	to := split(in.Get("list"))
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!dialogAuthorized(r), dialogCode(dialogInvalidKey)},
			{len(to) == 0, dialogCode("2003")},
			{mismatch(dialogNumber, to) != "", dialogCode("2005")},
			{in.Get("message") == "", dialogCode("2004")},
			{source == "" || len(source) > 11, dialogCode("2002")},
		},
		responses: responses{
			Accepted: dialogCode("1"), CredentialsRefused: dialogCode(dialogInvalidKey),
			Rejected: dialogCode("2009"), // the mask is blocked
		},
	}
}
