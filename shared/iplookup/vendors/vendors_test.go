package vendors

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// recorded is a response of a vendor with the result of the adapter. The source is V for the vendor's documentation, T
// for third-party code, or made for this test. An empty Fails means that the adapter accepts the response.
type recorded[T any] struct {
	Name, Source string
	Status       int
	Body         string
	Fails        upstream.Class
	Want         T
}

// address is the address of all look-ups except those of testRequests.
const address = "185.59.221.75"

// secrets has a value for every secret field of every vendor.
var secrets = map[string]string{"api_key": "s3cret-key", "token": "s3cret-key", "account_id": "42",
	"license_key": "s3cret-key"}

func caller(vendor, endpoint string) Caller {
	return Caller{
		Client: upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}),
		Account: upstream.Account{
			Integration: project.Integration{Vendor: vendor, Mode: project.BYOK}, Endpoint: endpoint, Secrets: secrets,
		},
	}
}

// ask looks up an address with a vendor that the handler emulates.
func ask[T any](t *testing.T, table []Vendor[T], vendor string, handler http.HandlerFunc, addr string) (T, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return Find(table, vendor).Ask(t.Context(), caller(vendor, server.URL), netip.MustParseAddr(addr))
}

// respond returns a handler with a constant response.
func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// testResponses compares the results of the recorded responses, and of responses with one meaning for all vendors.
func testResponses[T any](t *testing.T, table []Vendor[T], rows map[string][]recorded[T]) {
	for _, v := range overNetwork(table) {
		if len(rows[v.Name]) == 0 {
			t.Errorf("no responses of %s", v.Name)
		}
		cases := []recorded[T]{
			{Name: "server error", Status: 500, Body: `Internal Server Error`, Fails: upstream.Unusable},
			{Name: "a page", Status: 200, Body: `<!doctype html><title>We are back soon</title>`, Fails: upstream.Unusable},
			{Name: "nothing", Status: 200, Fails: upstream.Unusable},
			{Name: "an array", Status: 200, Body: `[]`, Fails: upstream.Unusable},
			{Name: "half a response", Status: 200, Body: `{"ip":"185.59.2`, Fails: upstream.Unusable},
			{Name: "a redirect", Status: 302, Fails: upstream.Unusable},
			{Name: "forbidden", Status: 403, Body: `s3cret-key is no key`, Fails: upstream.CredentialsRefused},
			{Name: "too many", Status: 429, Body: `too many`, Fails: upstream.Rejected},
		}
		for _, c := range append(cases, rows[v.Name]...) {
			t.Run(v.Name+"/"+c.Name, func(t *testing.T) {
				value, err := ask(t, table, v.Name, respond(c.Status, c.Body), address)
				check(t, value, err, c.Fails, c.Want)
			})
		}
		value, err := ask(t, table, v.Name, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, address)
		check(t, value, err, upstream.NoResponse, value)
	}
}

func overNetwork[T any](table []Vendor[T]) []Vendor[T] {
	return slices.DeleteFunc(slices.Clone(table), Vendor[T].OnDisk)
}

func check[T any](t *testing.T, value T, err error, fails upstream.Class, want T) {
	t.Helper()
	var failed *upstream.Error
	switch {
	case fails == "" && (err != nil || !reflect.DeepEqual(value, want)):
		t.Errorf("%+v, %v; wants %+v", value, err, want)
	case fails == unknown && !errors.Is(err, ErrUnknown):
		t.Errorf("%+v, %v; wants an unknown address", value, err)
	case fails != "" && fails != unknown && (!errors.As(err, &failed) || failed.Class != fails):
		t.Errorf("%+v, %v; wants %s", value, err, fails)
	case err != nil && strings.Contains(err.Error(), "s3cret"):
		t.Errorf("the error contains a secret: %v", err)
	}
}

// testRequests compares the requests that the vendors receive for the address 2001:470::1.
func testRequests[T any](t *testing.T, table []Vendor[T], requests map[string]string) {
	for vendor, want := range requests {
		var got string
		_, _ = ask(t, table, vendor, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		}, "2001:470::1")
		if got != want {
			t.Errorf("%s receives %q, wants %q", vendor, got, want)
		}
	}
}

// testDatabase compares the result for an address in the databases of a folder.
func testDatabase[T any](t *testing.T, table []Vendor[T], folder, addr string, fails upstream.Class, want T) {
	t.Helper()
	c := Caller{Databases: NewDatabases(folder),
		Account: upstream.Account{Integration: project.Integration{Vendor: "maxmind-mmdb"}}}
	value, err := Find(table, "maxmind-mmdb").Ask(t.Context(), c, netip.MustParseAddr(addr))
	check(t, value, err, fails, want)
}

// fuzz fails for a response that causes a panic of an adapter, and for one that is accepted with another status than
// 200, unless the body of the vendor decides before the status.
func fuzz[T any](f *testing.F, table []Vendor[T], rows map[string][]recorded[T], bodyDecides ...string) {
	for _, responses := range rows {
		for _, row := range responses {
			f.Add(row.Status, row.Body)
		}
	}
	var handler http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
	f.Cleanup(server.Close)
	callers := map[string]Caller{}
	for _, v := range table {
		callers[v.Name] = caller(v.Name, server.URL)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || len(body) > 1<<16 {
			return
		}
		handler = respond(status, body)
		for _, v := range overNetwork(table) {
			_, err := v.Ask(t.Context(), callers[v.Name], netip.MustParseAddr(address))
			if err == nil && status != 200 && !slices.Contains(bodyDecides, v.Name) {
				t.Errorf("%s accepts status %d: %q", v.Name, status, body)
			}
		}
	})
}
