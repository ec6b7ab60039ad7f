package vendors

import (
	"testing"

	"svcapi/shared/upstream"
)

func TestDialog(t *testing.T) {
	responses := []recorded{
		{"accepted", "V", 200, "1", "", Receipt{Status: "success"}},
		{"accepted, with a line end", "made", 200, "1\r\n", "", Receipt{Status: "success"}},
		{"another number", "made", 200, "2", upstream.Unusable, Receipt{}},
		{"an unknown code", "made", 200, "2099", upstream.Unusable, Receipt{}},
		{"a code with an HTTP error", "made", 400, "2007", upstream.CredentialsRefused, Receipt{}},
	}
	for code, failure := range dialogCodes {
		responses = append(responses, recorded{code, "V", 200, code, failure.class, Receipt{}})
	}
	testResponses(t, "dialog", responses)
	testBalances(t, "dialog", []balanceCase{
		{"a balance", "V", 200, "1|4500.00", "4500.00", ""},
		{"refused", "V", 200, "2007", "", upstream.CredentialsRefused},
		{"without a number", "made", 200, "1|", "", upstream.Unusable},
	})
}
