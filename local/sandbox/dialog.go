package sandbox

import (
	"net/http"
	"regexp"
	"strings"
)

// DialogKey is what the sandbox's Dialog eSMS accepts as esmsqk in the URL method.
const DialogKey = "dialog-sandbox-esmsqk"

// Codes of the URL method; each is a whole answer.
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

// dialog speaks Dialog eSMS's URL method: GET, the key in the query, a code as plain text.
func dialog() vendor {
	return vendor{
		name:     "dialog",
		secrets:  []string{"esmsqk"},
		accepted: []string{DialogKey},
		routes: []route{
			{"GET /api/v1/message-via-url/create/url-campaign", dialogSend},
			{"GET /api/v1/message-via-url/check/balance", dialogBalance},
		},
		unknown: textReply(http.StatusNotFound, dialogBadRequest),
	}
}

func dialogCode(code string) reply { return textReply(http.StatusOK, code) }

func dialogSend(r *request) exchange {
	in := r.URL.Query()
	ex := exchange{operation: "send"}
	if list := in.Get("list"); list != "" {
		ex.to = strings.Split(list, ",")
	}
	switch {
	case in.Get("esmsqk") != DialogKey:
		return ex.refuse(dialogCode(dialogInvalidKey))
	case len(ex.to) == 0:
		return ex.refuse(dialogCode(dialogNoNumbers))
	case mismatch(dialogNumber, ex.to) != "":
		return ex.refuse(dialogCode(dialogBadNumbers))
	case in.Get("message") == "":
		return ex.refuse(dialogCode(dialogNoMessage))
	case in.Get("source_address") == "" || len(in.Get("source_address")) > 11:
		return ex.refuse(dialogCode(dialogBadRequest))
	}
	ex.replies = map[Outcome]reply{
		Accepted:           dialogCode(dialogAccepted),
		Rejected:           dialogCode(dialogMaskBlocked),
		CredentialsRefused: dialogCode(dialogInvalidKey),
	}
	return ex
}

func dialogBalance(r *request) exchange {
	ex := exchange{operation: "balance"}
	if r.URL.Query().Get("esmsqk") != DialogKey {
		return ex.refuse(dialogCode(dialogInvalidKey))
	}
	ex.replies = map[Outcome]reply{
		Accepted:           dialogCode(dialogAcceptedFunds),
		CredentialsRefused: dialogCode(dialogInvalidKey),
	}
	return ex
}
