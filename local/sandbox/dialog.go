package sandbox

import (
	"net/http"
	"regexp"
)

// DialogKey is the esmsqk that the URL method of the sandbox's Dialog eSMS accepts.
const DialogKey = "dialog-sandbox-esmsqk"

// Responses of the URL method.
const (
	dialogAccepted      = "1"
	dialogBadRequest    = "2002"
	dialogNoNumbers     = "2003"
	dialogNoMessage     = "2004"
	dialogBadNumbers    = "2005"
	dialogInvalidKey    = "2007"
	dialogMaskBlocked   = "2009"
	dialogAcceptedFunds = "1|4500.00"
)

var dialogNumber = regexp.MustCompile(`^(?:0|94)?7\d{8}$`)

// dialog simulates Dialog eSMS's URL method: GET, the key in the query, a code as plain text.
func dialog() vendor {
	return vendor{
		name:     "dialog",
		secrets:  []string{"esmsqk"},
		accepted: []string{DialogKey},
		routes: []route{
			{"GET /api/v1/message-via-url/create/url-campaign", dialogSend},
			{"GET /api/v1/message-via-url/check/balance", balance(dialogAuthorized, dialogCode(dialogAcceptedFunds), dialogCode(dialogInvalidKey))},
		},
		unknown: textResponse(http.StatusNotFound, dialogBadRequest),
	}
}

func dialogCode(code string) response { return textResponse(http.StatusOK, code) }

func dialogAuthorized(r *request) bool { return r.URL.Query().Get("esmsqk") == DialogKey }

func dialogSend(r *request) result {
	in := r.URL.Query()
	source := in.Get("source_address")
	to := split(in.Get("list"))
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!dialogAuthorized(r), dialogCode(dialogInvalidKey)},
			{len(to) == 0, dialogCode(dialogNoNumbers)},
			{mismatch(dialogNumber, to) != "", dialogCode(dialogBadNumbers)},
			{in.Get("message") == "", dialogCode(dialogNoMessage)},
			{source == "" || len(source) > 11, dialogCode(dialogBadRequest)},
		},
		responses: responses{
			Accepted:           dialogCode(dialogAccepted),
			Rejected:           dialogCode(dialogMaskBlocked),
			CredentialsRefused: dialogCode(dialogInvalidKey),
		},
	}
}
