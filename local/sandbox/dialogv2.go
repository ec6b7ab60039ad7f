package sandbox

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// dialogTokenLife is the vendor's documented life of a token.
const dialogTokenLife = 43_200 * time.Second

var nineDigits = regexp.MustCompile(`^7\d{8}$`)

// dialogState holds the tokens and transaction IDs that the vendor has seen.
type dialogState struct {
	tokens
	transactions sync.Map
}

// dialogv2 simulates Dialog eSMS's v2 interface, with the errCode values of the vendor's document v3.2: a login for a
// token, then JSON with an array of recipients.
func dialogv2() vendor {
	var d dialogState
	return vendor{
		name: "dialogv2", secrets: []string{"username", "password", "token", "refreshToken"},
		accepted: []string{DialogUsername, DialogPassword},
		routes:   []route{{"POST /api/v2/user/login", d.login}, {"POST /api/v2/sms", d.send}},
		unknown:  reply(`404 {"status":"failed","comment":"Not Found"}`),
	}
}

func dialogFailed(status, code int, comment string) response {
	return jsonResponse(status, object{"status": "failed", "comment": comment, "data": "", "errCode": code})
}

func (d *dialogState) login(r *request) result {
	refusal := reply(`401 {"status":"failed","comment":"Invalid username or password","token":null,"remainingCount":2,"data":"","errCode":115}`)
	token := d.logIn(r, DialogUsername, DialogPassword, dialogTokenLife)
	return result{
		operation: "login",
		problems:  []problem{{token == "", refusal}},
		responses: responses{
			Accepted: success(object{
				"status": "success", "comment": "User logged in", "token": token, "remainingCount": nil,
				"expiration": dialogTokenLife.Seconds(), "refreshToken": "sandbox." + rand.Text(), "refreshExpiration": 604_800,
				"userData": object{
					"id": 1, "fname": "Demo", "lname": "Account", "mobile": "771234567", "email": "demo@dialog.example",
					"defaultMask": "Demo", "additional_mask": []object{{"mask": "Demo"}},
				},
				"errCode": "",
			}),
			Rejected: refusal, CredentialsRefused: refusal,
		},
	}
}

func (d *dialogState) send(r *request) result {
	var in struct {
		MSISDN []struct {
			Mobile string `json:"mobile"`
		} `json:"msisdn"`
		Message       string `json:"message"`
		SourceAddress string `json:"sourceAddress"`
		TransactionID int64  `json:"transaction_id"`
	}
	valid := r.json(&in)
	var to []string
	for _, m := range in.MSISDN {
		to = append(to, m.Mobile)
	}
	invalid := func(comment string) response { return dialogFailed(http.StatusBadRequest, 101, comment) }
	tokenRefused := dialogFailed(http.StatusUnauthorized, 100, "Token is invalid or has expired")
	maskRefused := dialogFailed(http.StatusOK, 108, "Mask is not approved")
	wrong := mismatch(nineDigits, to)
	res := result{
		operation: "send", to: to,
		problems: []problem{
			{!d.accept(r), tokenRefused},
			{!valid || len(to) == 0 || in.Message == "", invalid("Invalid request")},
			{wrong != "", invalid("Invalid mobile number " + wrong)},
			{len(in.SourceAddress) > 11, maskRefused},
			{in.TransactionID < 1 || in.TransactionID > 999_999_999_999_999_999, invalid("transaction_id must be an integer of 1 to 18 digits")},
		},
		responses: responses{
			Accepted: success(object{
				"status": "success", "comment": "Campaign Created, 0 duplicates found, 0 invalid numbers found, 0 mask blocked numbers found",
				"data": object{
					"campaignId": in.TransactionID%1_000_000 + 1, "campaignCost": 0.5 * float64(segments(in.Message)*len(to)),
					"walletBalance": 4500.0, "userId": 1,
				},
				"errCode": "",
			}),
			Rejected:           maskRefused,
			CredentialsRefused: dialogFailed(http.StatusUnauthorized, 116, "Account is locked"),
			TokenRefused:       tokenRefused,
		},
	}
	if res.refusal() == nil { // a refused request uses up no transaction ID
		_, used := d.transactions.LoadOrStore(in.TransactionID, true)
		res.problems = []problem{{used, dialogFailed(http.StatusBadRequest, 104, "transaction_id was used before")}}
	}
	return res
}
