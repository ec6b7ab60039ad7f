package sandbox

import (
	"fmt"
	"net/http"
	"regexp"
)

// What the sandbox's QuickSend accepts.
const (
	QuickSendEmail  = "account@quicksend.example"
	QuickSendAPIKey = "quicksend-sandbox-api-key"
)

var tenDigits = regexp.MustCompile(`^0\d{9}$`)

// quicksend speaks QuickSend.lk's API: one path, the function in the query, Basic credentials, JSON.
func quicksend() vendor {
	return vendor{
		name:     "quicksend",
		secrets:  []string{"un", "up"},
		accepted: []string{QuickSendEmail, QuickSendAPIKey},
		routes:   []route{{"POST /Client/api.php", quicksendCall}},
		unknown:  textReply(http.StatusNotFound, "Not Found"),
	}
}

// quicksendBody is the union of the functions' bodies.
type quicksendBody struct {
	SenderID  string `json:"senderID"`
	To        any    `json:"to"` // one number, or an array of them
	Msg       string `json:"msg"`
	CheckCost bool   `json:"check_cost"`
	MsgList   []struct {
		To  string `json:"to"`
		Msg string `json:"msg"`
	} `json:"msg_list"`
}

func quicksendError(status int, message string) reply {
	return jsonReply(status, object{"status": "error", "error": message})
}

func quicksendCall(r *request) exchange {
	ex := exchange{operation: "send"}
	function := r.URL.Query().Get("FUN")
	if function == "CHECK_BALANCE" {
		ex.operation = "balance"
	}
	var in quicksendBody
	valid := r.json(&in)
	texts := []string{in.Msg}
	switch to := in.To.(type) {
	case string:
		ex.to, valid = []string{to}, valid && function == "SEND_SINGLE"
	case []any:
		valid = valid && function == "SEND_BULK_SAME"
		for _, t := range to {
			ex.to = append(ex.to, fmt.Sprint(t))
		}
	}
	if function == "SEND_BULK_DIFFERENT" {
		texts = nil
		for _, m := range in.MsgList {
			ex.to, texts = append(ex.to, m.To), append(texts, m.Msg)
		}
	}
	if function == "SEND_BULK_SAME" && in.CheckCost {
		ex.operation = "check_cost"
	}
	if !r.basic(QuickSendEmail, QuickSendAPIKey) {
		return ex.refuse(quicksendError(http.StatusUnauthorized, "Unauthorized: wrong e-mail or API key"))
	}
	ex.replies = map[Outcome]reply{
		Accepted:           jsonReply(http.StatusOK, object{"status": "success", "id": number()}),
		WithoutID:          jsonReply(http.StatusOK, object{"status": "success"}),
		Rejected:           quicksendError(http.StatusOK, "Message was rejected"),
		CredentialsRefused: quicksendError(http.StatusUnauthorized, "Unauthorized: wrong e-mail or API key"),
	}
	switch {
	case function == "CHECK_BALANCE":
		ex.replies[Accepted] = textReply(http.StatusOK, "1250.50")
		return ex
	case function != "SEND_SINGLE" && function != "SEND_BULK_SAME" && function != "SEND_BULK_DIFFERENT":
		return ex.refuse(textReply(http.StatusOK, "Invalid function"))
	case !valid || len(ex.to) == 0:
		return ex.refuse(quicksendError(http.StatusOK, "Invalid request"))
	case in.SenderID == "":
		return ex.refuse(quicksendError(http.StatusOK, "Invalid sender ID"))
	case mismatch(tenDigits, ex.to) != "":
		return ex.refuse(quicksendError(http.StatusOK, "Invalid number "+mismatch(tenDigits, ex.to)))
	case mismatch(someText, texts) != "":
		return ex.refuse(quicksendError(http.StatusOK, "Message is empty"))
	case ex.operation == "check_cost":
		ex.replies[Accepted] = jsonReply(http.StatusOK, object{"status": "success", "campaign_data": quicksendCost(in, len(ex.to))})
	}
	return ex
}

// quicksendCost is the cost estimate, with numbers where the vendor's own types are not known.
func quicksendCost(in quicksendBody, recipients int) object {
	const price = 0.64 // rupees a part
	size := parts(in.Msg)
	cost := price * float64(size)
	return object{
		"campaign_method": "API", "campaign_type": "bulk_same", "sender_id": in.SenderID,
		"campaign_total_cost": cost * float64(recipients), "campaign_total_numbers": recipients,
		"sms_msg_data": []object{{
			"msg": in.Msg, "unicode": !gsm(in.Msg), "msg_size": size, "per_sms_cost": price, "msg_cost": cost,
		}},
	}
}
