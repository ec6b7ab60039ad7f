package sandbox

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

var tenDigits = regexp.MustCompile(`^0\d{9}$`)

// quicksend simulates QuickSend.lk's API: one path, or a white label's root, functions in the query, Basic, JSON.
func quicksend() vendor {
	return vendor{
		name: "quicksend", secrets: []string{"un", "up"}, accepted: []string{QuickSendEmail, QuickSendAPIKey},
		routes: []route{{"POST /Client/api.php", quicksendCall}, {"POST ", quicksendCall}}, unknown: reply("404 Not Found"),
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

func quicksendError(status int, message string) response {
	return jsonResponse(status, object{"status": "error", "error": message})
}

func quicksendCall(r *request) result {
	function := r.URL.Query().Get("FUN")
	var in quicksendBody
	valid := r.json(&in)
	var recipients []string
	texts := []string{in.Msg}
	switch to := in.To.(type) {
	case string:
		recipients, valid = []string{to}, valid && function == "SEND_SINGLE"
	case []any:
		valid = valid && function == "SEND_BULK_SAME"
		for _, t := range to {
			recipients = append(recipients, fmt.Sprint(t))
		}
	}
	if function == "SEND_BULK_DIFFERENT" {
		texts = nil
		for _, m := range in.MsgList {
			recipients, texts = append(recipients, m.To), append(texts, m.Msg)
		}
	}
	unauthorized := quicksendError(http.StatusUnauthorized, "Unauthorized: wrong e-mail or API key")
	res := result{
		operation: "send", to: recipients,
		problems: []problem{{!r.basic(QuickSendEmail, QuickSendAPIKey), unauthorized}},
		responses: responses{
			Accepted:           success(object{"status": "success", "id": messageID()}),
			WithoutID:          reply(`200 {"status":"success"}`),
			Rejected:           quicksendError(http.StatusOK, "Message was rejected"),
			CredentialsRefused: unauthorized,
		},
	}
	switch {
	case function == "CHECK_BALANCE":
		res.operation, res.responses[Accepted] = "balance", reply("200 1250.50")
		return res
	case function == "SEND_BULK_SAME" && in.CheckCost:
		res.operation = "check_cost"
		res.responses[Accepted] = success(object{"status": "success", "campaign_data": quicksendCost(in, len(recipients))})
	}
	known := slices.Contains([]string{"SEND_SINGLE", "SEND_BULK_SAME", "SEND_BULK_DIFFERENT"}, function)
	wrong := mismatch(tenDigits, recipients)
	res.problems = append(res.problems,
		problem{!known, reply("200 Invalid function")},
		problem{!valid || len(recipients) == 0, quicksendError(http.StatusOK, "Invalid request")},
		problem{in.SenderID == "", quicksendError(http.StatusOK, "Invalid sender ID")},
		problem{wrong != "", quicksendError(http.StatusOK, "Invalid number "+wrong)},
		problem{slices.Contains(texts, ""), quicksendError(http.StatusOK, "Message is empty")})
	return res
}

// quicksendCost returns the cost estimate, with numbers where the vendor's own types are not known.
func quicksendCost(in quicksendBody, recipients int) object {
	const price = 0.64 // rupees a segment
	size := segments(in.Msg)
	cost := price * float64(size)
	return object{
		"campaign_method": "API", "campaign_type": "bulk_same", "sender_id": in.SenderID,
		"campaign_total_cost": cost * float64(recipients), "campaign_total_numbers": recipients,
		"sms_msg_data": []object{{
			"msg": in.Msg, "unicode": !gsm(in.Msg), "msg_size": size, "per_sms_cost": price, "msg_cost": cost,
		}},
	}
}
