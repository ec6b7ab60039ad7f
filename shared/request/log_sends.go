package request

import "log/slog"

// Sent is what became of a message at a vendor. The zero Sent is of a message whose send has not begun.
type Sent struct {
	State     string // as in openapi.yaml#SmsRecipientResult
	Vendor    string // the vendor that was asked last; empty: none
	VendorID  string // the vendor's ID of the message; empty: none
	Reference string // openapi.yaml#SmsReference; empty: none
}

// loggedSends is the number of messages of a send whose outcomes are in its log line. Of the others the line has the
// hashes of their numbers, 190 KB at most, because CloudWatch takes 256 KB of a line.
const loggedSends = 20

// loggedSend is a message in the log line.
type loggedSend struct {
	To        string `json:"to,omitzero"`     // the number's keyed hash
	Number    string `json:"number,omitzero"` // where LOG_PAYLOADS is on
	State     string `json:"state"`
	Vendor    string `json:"vendor,omitzero"`
	VendorID  string `json:"vendor_id,omitzero"`
	Reference string `json:"reference,omitzero"`
}

// sends returns the attributes of the messages of a send, by which "svc sms find" and "svc sms status" find the send
// (docs/decisions/operating.md#logged-sends). A send with privacy has none.
func (s *Service) sends(state *requestState) []slog.Attr {
	if state.privacy || len(state.messages) == 0 || state.messages[0].Sent.State == "" {
		return nil
	}
	var sends []loggedSend
	var further []string
	for i, m := range state.messages {
		number, hash := "", ""
		if s.cfg.LogPayloads != payloadsOff {
			hash = state.record.LoggedNumber(m.To)
		}
		if i >= loggedSends {
			further = append(further, hash)
			continue
		}
		if s.cfg.LogPayloads == payloadsOn {
			number = m.To
		}
		sends = append(sends, loggedSend{hash, number, m.Sent.State, m.Sent.Vendor, m.Sent.VendorID, m.Sent.Reference})
	}
	attributes := []slog.Attr{slog.Any("sends", sends)}
	if len(further) > 0 {
		attributes = append(attributes, slog.Int("further_sends", len(further)))
		if further[0] != "" {
			attributes = append(attributes, slog.Any("further_to", further))
		}
	}
	return attributes
}
