package vendors

import (
	"context"
	"net/http"
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

// The request is the documented one.
func TestDialogRequest(t *testing.T) {
	var r http.Request
	var text string
	adapter := connect(t, "dialog", constantResponse(200, "1", &r, &text)).(SameSender)
	if _, err := adapter.SendSame(context.Background(), []string{"+94771234567", "+94712345678"}, Message{Text: "Hi & bye"}); err != nil {
		t.Fatal(err)
	}
	same(t, []string{r.Method, r.URL.String()},
		[]string{"GET", "/api/v1/message-via-url/create/url-campaign?esmsqk=s3cret-key&list=0771234567%2C0712345678&message=Hi+%26+bye&source_address=MyBrand"})
}
