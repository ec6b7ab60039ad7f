package sandbox

import (
	"net/http"
	"regexp"
)

var lkE164 = regexp.MustCompile(`^\+947\d{8}$`)

// smslenz simulates SMSlenz.lk's API: the account in the JSON body, one recipient or an array of them.
func smslenz() vendor {
	return vendor{
		name: "smslenz", secrets: []string{"user_id", "api_key"}, accepted: []string{SMSLenzAPIKey},
		routes: []route{
			{"POST /send-sms", smslenzSend},
			{"POST /send-bulk-sms", smslenzSend},
			{"POST /account-status", balance(smslenzAuthorized, smslenzFunds, smslenzRefusal)},
		},
		unknown: reply(`404 {"success":false,"message":"Not found"}`),
	}
}

var (
	smslenzFunds   = reply(`200 {"data":{"sms_credit_balance":"1450.00"},"message":"Account status","success":true}`)
	smslenzRefusal = reply(`401 {"success":false,"message":"Invalid user ID or API key"}`)
)

func smslenzAuthorized(r *request) bool {
	in := r.parameters()
	return in.Get("user_id") == SMSLenzUserID && in.Get("api_key") == SMSLenzAPIKey
}

func smslenzSend(r *request) result {
	var in struct {
		SenderID string   `json:"sender_id"`
		Contact  string   `json:"contact"`
		Contacts []string `json:"contacts"`
		Message  string   `json:"message"`
	}
	valid := r.json(&in)
	to := in.Contacts
	if r.URL.Path == "/smslenz/send-sms" {
		to = []string{in.Contact}
	}
	invalid := func(field, message string) response {
		return jsonResponse(http.StatusUnprocessableEntity, object{
			"success": false, "message": "Validation failed", "errors": object{field: []string{message}},
		})
	}
	wrong := mismatch(lkE164, to)
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!smslenzAuthorized(r), smslenzRefusal},
			{!valid || len(to) == 0, invalid("contacts", "The contacts field is required.")},
			{wrong != "", invalid("contact", "The contact "+wrong+" is not valid.")},
			{in.SenderID == "", invalid("sender_id", "The sender id field is required.")},
			{in.Message == "" || len(in.Message) > 1500, invalid("message", "The message must be 1 to 1500 characters.")},
		},
		responses: responses{
			Accepted: success(object{
				"success": true, "message": "SMS sent successfully", "data": object{"campaign_id": messageID(), "sms_credit_balance": "1449.00"},
			}),
			Rejected:           reply(`200 {"success":false,"message":"Sender ID is not approved"}`),
			CredentialsRefused: smslenzRefusal,
		},
	}
}
