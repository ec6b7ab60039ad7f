package request

import "log/slog"

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
	if state.privacy || state.job == nil || state.job.Messages == nil {
		return nil
	}
	var sends []loggedSend
	var further []string
	for i, m := range state.job.Messages.Sent() {
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
		sends = append(sends, loggedSend{hash, number, m.State, m.Vendor, m.VendorID, m.Reference})
	}
	if len(sends) == 0 {
		return nil
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
