package sandbox

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// What the sandbox's Dialog eSMS accepts as a login of its v2 interface.
const (
	DialogUsername = "dialog-sandbox-user"
	DialogPassword = "dialog-sandbox-password"
)

// dialogTokenLife is a token's life by the vendor's document.
const dialogTokenLife = 43_200 * time.Second

// Error codes seen in answers of the v2 interface.
const (
	dialogTokenRefused   = 100
	dialogAccountRefused = 101
	dialogInvalid        = 102
	dialogMaskRefused    = 108
)

var nineDigits = regexp.MustCompile(`^7\d{8}$`)

// dialogTokens are the tokens and transaction IDs that the vendor remembers.
type dialogTokens struct {
	mu           sync.Mutex
	tokens       map[string]time.Time // by token, its end
	transactions map[int64]bool
}

// dialogv2 speaks Dialog eSMS's v2 interface: a login for a token, then JSON with an array of recipients.
func dialogv2() vendor {
	d := &dialogTokens{tokens: map[string]time.Time{}, transactions: map[int64]bool{}}
	return vendor{
		name:     "dialogv2",
		secrets:  []string{"username", "password", "token", "refreshToken"},
		accepted: []string{DialogUsername, DialogPassword},
		routes:   []route{{"POST /api/v2/user/login", d.login}, {"POST /api/v2/sms", d.send}},
		unknown:  jsonReply(http.StatusNotFound, object{"status": "failed", "comment": "Not Found"}),
	}
}

func dialogFailed(status, code int, comment string) reply {
	return jsonReply(status, object{"status": "failed", "comment": comment, "data": "", "errCode": code})
}

func (d *dialogTokens) login(r *request) exchange {
	var in struct{ Username, Password string }
	valid := r.json(&in)
	ex := exchange{operation: "login"}
	refusal := jsonReply(http.StatusUnauthorized, object{
		"status": "failed", "comment": "Invalid username or password", "token": nil, "remainingCount": 2, "data": "",
		"errCode": dialogAccountRefused,
	})
	if !valid || in.Username != DialogUsername || in.Password != DialogPassword {
		return ex.refuse(refusal)
	}
	token := "sandbox." + rand.Text()
	d.mu.Lock()
	d.tokens[token] = time.Now().Add(dialogTokenLife)
	d.mu.Unlock()
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"status": "success", "comment": "User logged in", "token": token, "remainingCount": nil,
			"expiration": dialogTokenLife.Seconds(), "refreshToken": "sandbox." + rand.Text(), "refreshExpiration": 604_800,
			"userData": object{
				"id": 1, "fname": "Demo", "lname": "Account", "mobile": "771234567", "email": "demo@dialog.example",
				"defaultMask": "Demo", "additional_mask": []object{{"mask": "Demo"}},
			},
			"errCode": "",
		}),
		Rejected:           refusal,
		CredentialsRefused: refusal,
	}
	return ex
}

// knows tells whether the request brings a token that is in force.
func (d *dialogTokens) knows(r *request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.tokens[token])
}

// take notes a transaction ID; false: it was used before.
func (d *dialogTokens) take(id int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	used := d.transactions[id]
	d.transactions[id] = true
	return !used
}

func (d *dialogTokens) send(r *request) exchange {
	var in struct {
		MSISDN []struct {
			Mobile string `json:"mobile"`
		} `json:"msisdn"`
		Message       string `json:"message"`
		SourceAddress string `json:"sourceAddress"`
		TransactionID int64  `json:"transaction_id"`
	}
	valid := r.json(&in)
	ex := exchange{operation: "send"}
	for _, m := range in.MSISDN {
		ex.to = append(ex.to, m.Mobile)
	}
	tokenRefused := dialogFailed(http.StatusUnauthorized, dialogTokenRefused, "Token is invalid or has expired")
	switch {
	case !d.knows(r):
		return ex.refuse(tokenRefused)
	case !valid || len(ex.to) == 0 || in.Message == "":
		return ex.refuse(dialogFailed(http.StatusBadRequest, dialogInvalid, "Invalid request"))
	case mismatch(nineDigits, ex.to) != "":
		return ex.refuse(dialogFailed(http.StatusBadRequest, dialogInvalid, "Invalid mobile number "+mismatch(nineDigits, ex.to)))
	case len(in.SourceAddress) > 11:
		return ex.refuse(dialogFailed(http.StatusOK, dialogMaskRefused, "Mask is not approved"))
	case in.TransactionID < 1 || in.TransactionID > 999_999_999_999_999_999:
		return ex.refuse(dialogFailed(http.StatusBadRequest, dialogInvalid, "transaction_id must be an integer of 1 to 18 digits"))
	case !d.take(in.TransactionID):
		return ex.refuse(dialogFailed(http.StatusBadRequest, dialogInvalid, "transaction_id was used before"))
	}
	ex.replies = map[Outcome]reply{
		Accepted: jsonReply(http.StatusOK, object{
			"status": "success", "comment": "Campaign Created, 0 duplicates found, 0 invalid numbers found, 0 mask blocked numbers found",
			"data": object{
				"campaignId": in.TransactionID%1_000_000 + 1, "campaignCost": 0.5 * float64(parts(in.Message)*len(ex.to)),
				"walletBalance": 4500.0, "userId": 1,
			},
			"errCode": "",
		}),
		Rejected:           dialogFailed(http.StatusOK, dialogMaskRefused, "Mask is not approved"),
		CredentialsRefused: dialogFailed(http.StatusUnauthorized, dialogAccountRefused, "Account is not allowed to send"),
		TokenRefused:       tokenRefused,
	}
	return ex
}
