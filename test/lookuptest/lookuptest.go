// Package lookuptest tests the adapters of IP look-up vendors with recorded responses.
package lookuptest

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

	"svcapi/shared/iplookup"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// Recorded is a response of a vendor with the result of the adapter. The source is V for the vendor's documentation, T for
// third-party code, or made for this test. An empty Fails means that the adapter accepts the response.
type Recorded[T any] struct {
	Name, Source string
	Status       int
	Body         string
	Fails        upstream.Class
	Want         T
}

// Row is a Recorded of a test's own package, whose literals need no field names.
type Row[T any] interface {
	~struct {
		Name, Source string
		Status       int
		Body         string
		Fails        upstream.Class
		Want         T
	}
}

// Unknown is the class of a response that does not know the address.
const Unknown upstream.Class = "unknown"

// address is the address of all look-ups except those of Requests.
const address = "185.59.221.75"

// secrets has a value for every secret field of every vendor.
var secrets = map[string]string{"api_key": "s3cret-key", "token": "s3cret-key", "account_id": "42", "license_key": "s3cret-key"}

func caller(vendor, endpoint string) iplookup.Caller {
	return iplookup.Caller{
		Client: upstream.New(upstream.Config{TimeoutSeconds: 1, Local: true}),
		Account: upstream.Account{
			Integration: project.Integration{Vendor: vendor, Mode: project.BYOK}, Endpoint: endpoint, Secrets: secrets,
		},
	}
}

// Ask looks up an address with a vendor that the handler emulates.
func Ask[T any](t *testing.T, table []iplookup.Vendor[T], vendor string, handler http.HandlerFunc, addr string) (T, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return iplookup.Find(table, vendor).Ask(t.Context(), caller(vendor, server.URL), netip.MustParseAddr(addr))
}

// Respond returns a handler with a constant response.
func Respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Responses compares the results of the recorded responses, and of responses with one meaning for all vendors.
func Responses[T any, R Row[T]](t *testing.T, table []iplookup.Vendor[T], recorded map[string][]R) {
	for _, v := range overNetwork(table) {
		if len(recorded[v.Name]) == 0 {
			t.Errorf("no responses of %s", v.Name)
		}
		cases := []Recorded[T]{
			{Name: "server error", Status: 500, Body: `Internal Server Error`, Fails: upstream.Unusable},
			{Name: "a page", Status: 200, Body: `<!doctype html><title>We are back soon</title>`, Fails: upstream.Unusable},
			{Name: "nothing", Status: 200, Fails: upstream.Unusable},
			{Name: "an array", Status: 200, Body: `[]`, Fails: upstream.Unusable},
			{Name: "half a response", Status: 200, Body: `{"ip":"185.59.2`, Fails: upstream.Unusable},
			{Name: "a redirect", Status: 302, Fails: upstream.Unusable},
			{Name: "forbidden", Status: 403, Body: `s3cret-key is no key`, Fails: upstream.CredentialsRefused},
			{Name: "too many", Status: 429, Body: `too many`, Fails: upstream.Rejected},
		}
		for _, row := range recorded[v.Name] {
			cases = append(cases, Recorded[T](row))
		}
		for _, c := range cases {
			t.Run(v.Name+"/"+c.Name, func(t *testing.T) {
				value, err := Ask(t, table, v.Name, Respond(c.Status, c.Body), address)
				check(t, value, err, c.Fails, c.Want)
			})
		}
	}
}

func overNetwork[T any](table []iplookup.Vendor[T]) []iplookup.Vendor[T] {
	return slices.DeleteFunc(slices.Clone(table), iplookup.Vendor[T].OnDisk)
}

func check[T any](t *testing.T, value T, err error, fails upstream.Class, want T) {
	t.Helper()
	var failed *upstream.Error
	switch {
	case fails == "" && (err != nil || !reflect.DeepEqual(value, want)):
		t.Errorf("%+v, %v; wants %+v", value, err, want)
	case fails == Unknown && !errors.Is(err, iplookup.ErrUnknown):
		t.Errorf("%+v, %v; wants an unknown address", value, err)
	case fails != "" && fails != Unknown && (!errors.As(err, &failed) || failed.Class != fails):
		t.Errorf("%+v, %v; wants %s", value, err, fails)
	case err != nil && strings.Contains(err.Error(), "s3cret"):
		t.Errorf("the error contains a secret: %v", err)
	}
}

// Requests compares the requests that the vendors receive for the address 2001:470::1.
func Requests[T any](t *testing.T, table []iplookup.Vendor[T], requests map[string]string) {
	for vendor, want := range requests {
		var got string
		_, _ = Ask(t, table, vendor, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		}, "2001:470::1")
		if got != want {
			t.Errorf("%s receives %q, wants %q", vendor, got, want)
		}
	}
}

// Transport tests vendors that do not respond or that close the connection.
func Transport[T any](t *testing.T, table []iplookup.Vendor[T]) {
	var zero T
	for _, v := range overNetwork(table) {
		_, err := Ask(t, table, v.Name, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, address)
		check(t, zero, err, upstream.NoResponse, zero)
		_, err = Ask(t, table, v.Name, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, address)
		check(t, zero, err, upstream.NoResponse, zero)
	}
}

// Database compares the result for an address in the databases of a folder.
func Database[T any](t *testing.T, table []iplookup.Vendor[T], folder, addr string, fails upstream.Class, want T) {
	t.Helper()
	c := iplookup.Caller{Databases: iplookup.NewDatabases(folder), Account: upstream.Account{Integration: project.Integration{Vendor: "maxmind-mmdb"}}}
	value, err := iplookup.Find(table, "maxmind-mmdb").Ask(t.Context(), c, netip.MustParseAddr(addr))
	check(t, value, err, fails, want)
}

// Fuzz fails for a response that causes a panic of an adapter, and for one that is accepted with another status than
// 200, unless the body of the vendor decides before the status.
func Fuzz[T any, R Row[T]](f *testing.F, table []iplookup.Vendor[T], recorded map[string][]R, bodyDecides ...string) {
	for _, rows := range recorded {
		for _, row := range rows {
			f.Add(Recorded[T](row).Status, Recorded[T](row).Body)
		}
	}
	var handler http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
	f.Cleanup(server.Close)
	callers := map[string]iplookup.Caller{}
	for _, v := range table {
		callers[v.Name] = caller(v.Name, server.URL)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || len(body) > 1<<16 {
			return
		}
		handler = Respond(status, body)
		for _, v := range overNetwork(table) {
			_, err := v.Ask(t.Context(), callers[v.Name], netip.MustParseAddr(address))
			if err == nil && status != 200 && !slices.Contains(bodyDecides, v.Name) {
				t.Errorf("%s accepts status %d: %q", v.Name, status, body)
			}
		}
	})
}
