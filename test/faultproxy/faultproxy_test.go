package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"svcapi/test/faultproxy"
	"svcapi/test/must"
)

// start starts a proxy in front of a service. The proxy has one fault for all requests, which come out of the channel.
func start(t *testing.T, fault faultproxy.Fault,
	service http.HandlerFunc) (*faultproxy.Proxy, <-chan *faultproxy.Request) {
	t.Helper()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	requests := make(chan *faultproxy.Request, 10)
	proxy := must.Get(faultproxy.Start(server.URL, func(r *faultproxy.Request) faultproxy.Fault {
		requests <- r
		return fault
	})).Or(t)
	t.Cleanup(proxy.Close)
	return proxy, requests
}

func client(p *faultproxy.Proxy) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: new(p.URL("a worker")), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

// TestRefusals checks that the AWS SDK understands the proxy's own responses, that they come before or after the
// request took effect, and that a cancelled transaction has one reason for each of its writes.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		fault   faultproxy.Fault
		arrives bool
		code    string
		reasons []string
	}{
		{faultproxy.Throttle, false, "ProvisionedThroughputExceededException", nil},
		{faultproxy.ThrottleKey, false, "ProvisionedThroughputExceededException", nil},
		{faultproxy.ThrottleTable, false, "ThrottlingException", nil},
		{faultproxy.LimitRate, false, "RequestLimitExceeded", nil},
		{faultproxy.Conflict, false, "TransactionConflictException", nil},
		{faultproxy.CancelThrottled, false, "TransactionCanceledException", []string{"None", "ThrottlingError"}},
		{faultproxy.Fail, false, "InternalServerError", nil},
		{faultproxy.FailApplied, true, "InternalServerError", nil},
	} {
		arrived := false
		proxy, _ := start(t, test.fault, func(w http.ResponseWriter, _ *http.Request) {
			arrived = true
			_, _ = io.WriteString(w, "{}")
		})
		put := types.TransactWriteItem{Put: &types.Put{TableName: new("t"), Item: map[string]types.AttributeValue{}}}
		_, err := client(proxy).TransactWriteItems(t.Context(),
			&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put, put}})
		var reasons []string
		if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			for _, reason := range cancelled.CancellationReasons {
				reasons = append(reasons, aws.ToString(reason.Code))
			}
		}
		failed, ok := errors.AsType[smithy.APIError](err)
		if !ok || failed.ErrorCode() != test.code || arrived != test.arrives || !slices.Equal(reasons, test.reasons) {
			t.Errorf("%s: %v, reasons %q, arrived: %t", test.fault, err, reasons, arrived)
		}
		response := must.Get(http.Get(proxy.URL("a worker") + "/page")).Or(t)
		if err := response.Body.Close(); err != nil || response.StatusCode < 400 {
			t.Errorf("%s: a service that is not AWS's responds with %d, %v", test.fault, response.StatusCode, err)
		}
	}
	for operation, want := range map[string]faultproxy.Fault{
		"Query": faultproxy.LimitRate, "PutItem": faultproxy.Conflict, "TransactWriteItems": faultproxy.CancelThrottled,
	} {
		if all := faultproxy.Throttles(operation); all[len(all)-1] != want || len(all) < 3 {
			t.Errorf("%s is throttled with %q", operation, all)
		}
	}
}

// TestFaults checks what arrives, and what the client receives.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault    faultproxy.Fault
		arrives  bool
		response string
		complete bool
	}{
		{faultproxy.Deliver, true, "the response", true},
		{faultproxy.DropRequest, false, "", false},
		{faultproxy.DropResponse, true, "", false},
		{faultproxy.CutResponse, true, "the re", false},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			arrived := ""
			proxy, requests := start(t, test.fault, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				arrived += r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("X-Amz-Target") + " " + string(body)
				w.Header().Set("X-Response", "yes")
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, "the response")
			})
			request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL("a worker")+"/x%2Fy?z=1",
				strings.NewReader("body"))).Or(t)
			request.Header.Set("X-Amz-Target", "DynamoDB_20120810.UpdateItem")
			var content []byte
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				if response.StatusCode != http.StatusTeapot || response.Header.Get("X-Response") != "yes" {
					t.Errorf("response %v", response)
				}
				content, err = io.ReadAll(response.Body)
				_ = response.Body.Close()
			}
			if (err == nil) != test.complete || string(content) != test.response {
				t.Errorf("the client receives %q, %v", content, err)
			}
			const want = "POST /x%2Fy?z=1 DynamoDB_20120810.UpdateItem body"
			if arrived != map[bool]string{true: want}[test.arrives] {
				t.Errorf("arrived: %q", arrived)
			}
			kept := <-requests
			if kept.Client != "a worker" || kept.Operation != "UpdateItem" {
				t.Errorf("request %+v", kept)
			}
			arrived = ""
			if err := kept.Deliver(t.Context()); err != nil || arrived != want {
				t.Errorf("late: %q, %v", arrived, err)
			}
		})
	}
}

// TestGivenUp checks that the proxy notices a client that closes its connection without reading the response.
func TestGivenUp(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after bool // the client closes its connection
	}{{name: "a client that waits"}, {name: "before the response",
		before: true}, {name: "after the response", after: true}} {
		t.Run(test.name, func(t *testing.T) {
			began, proceed := make(chan struct{}), make(chan struct{})
			proxy, requests := start(t, faultproxy.Deliver, func(http.ResponseWriter, *http.Request) {
				close(began)
				<-proceed
				time.Sleep(50 * time.Millisecond) // until the proxy sees the connection closed
			})
			address, _ := strings.CutPrefix(proxy.URL(""), "http://")
			conn := must.Get(net.Dial("tcp", strings.TrimSuffix(address, "/"))).Or(t)
			defer conn.Close()
			must.Get(io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n")).Or(t)
			<-began
			if test.before {
				_ = conn.Close()
			}
			close(proceed)
			sent := <-requests
			if !test.before {
				if _, err := conn.Read(make([]byte, 1)); err != nil || sent.GivenUp() { // the response is here
					t.Fatalf("%v, given up %t", err, sent.GivenUp())
				}
			}
			if test.after {
				_ = conn.Close()
			}
			want := test.before || test.after
			for i := 0; sent.GivenUp() != want && i < 100; i++ {
				time.Sleep(10 * time.Millisecond)
			}
			if sent.GivenUp() != want {
				t.Errorf("given up: %t", sent.GivenUp())
			}
		})
	}
}
