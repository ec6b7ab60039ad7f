package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

func TestHutch(t *testing.T) {
	testResponses(t, "hutch", []recorded{
		{"accepted", "T", 200, `{"serverRef":"a1b2"}`, "", Receipt{Status: "accepted", ID: "a1b2"}},
		{"accepted, a number", "made", 200, `{"serverRef":4711}`, "", Receipt{Status: "accepted", ID: "4711"}},
		{"without a reference", "T (a client counts it as not accepted)", 200, `{"message":"SMS sent"}`,
			upstream.Unusable, Receipt{}},
		{"refused", "made", 400, `{"message":"Invalid mask"}`, upstream.AccountRefused, Receipt{}},
		{"token refused, again and again", "T", 401, `{"message":"Bearer t0ken is expired"}`,
			upstream.CredentialsRefused, Receipt{}},
		{"its token in a page", "made", 500, `<p>Bearer t0ken, s3cret\u002dkey</p>`, upstream.Unusable, Receipt{}},
	})
}
