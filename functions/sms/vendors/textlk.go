package vendors

import "svcapi/shared/upstream"

// textLK is Text.lk's API v3 (text.lk/docs), an installation of Ultimate SMS.
func textLK() Vendor {
	return ultimateVendor("/api/v3", upstream.Spec{
		Name: "textlk", Title: "Text.lk", Endpoint: "https://app.text.lk", Settings: []upstream.Field{senderID, unitPrice},
	})
}
