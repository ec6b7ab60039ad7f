package vendors

import "svcapi/shared/upstream"

// textLK is Text.lk's API v3 (text.lk/docs), an installation of Ultimate SMS.
func textLK() Vendor {
	return Vendor{
		Spec: upstream.Spec{
			Name: "textlk", Title: "Text.lk", Endpoint: "https://app.text.lk",
			Settings: []upstream.Field{senderID, unitPrice}, Secrets: []upstream.Field{ultimateToken},
		},
		Concurrency: unpublished, Batch: 100,
		New: func(c *upstream.Client, a upstream.Account) Adapter {
			return &ultimateAdapter{caller{"textlk", c, a}, a.Endpoint + "/api/v3"}
		},
	}
}
