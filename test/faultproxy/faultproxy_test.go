package faultproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"svcapi/test/faultproxy"
)

// TestRefusals: the AWS SDK understands the proxy's own responses, and they come before or after the request took effect.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		fault   faultproxy.Fault
		arrives bool
		code    string
	}{
		{faultproxy.Throttle, false, "ProvisionedThroughputExceededException"},
		{faultproxy.ThrottleTable, false, "ThrottlingException"},
		{faultproxy.LimitRate, false, "RequestLimitExceeded"},
		{faultproxy.Conflict, false, "TransactionConflictException"},
		{faultproxy.CancelThrottled, false, "TransactionCanceledException"},
		{faultproxy.Fail, false, "InternalServerError"},
		{faultproxy.FailApplied, true, "InternalServerError"},
	} {
		arrived := false
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			arrived = true
			_, _ = io.WriteString(w, "{}")
		}))
		proxy, err := faultproxy.Start(service.URL, func(*faultproxy.Request) faultproxy.Fault { return test.fault })
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(proxy).ListTables(t.Context(), &dynamodb.ListTablesInput{})
		var apiError smithy.APIError
		if !errors.As(err, &apiError) || apiError.ErrorCode() != test.code || arrived != test.arrives {
			t.Errorf("%s: %v, arrived: %t", test.fault, err, arrived)
		}
		response, err := http.Get(proxy.URL("a worker") + "/page")
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode < 400 {
			t.Errorf("%s: a service that is not AWS's responds with %d, %v", test.fault, response.StatusCode, err)
		}
		proxy.Close()
		service.Close()
	}
}

// TestFaults: what arrives, and what the client sees of it.
func TestFaults(t *testing.T) {
	var arrived atomic.Value
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived.Store(r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("X-Amz-Target") + " " + string(body))
		w.Header().Set("X-Response", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "the response")
	}))
	defer service.Close()
	for _, test := range []struct {
		fault    faultproxy.Fault
		arrives  bool
		response string
		whole    bool
	}{
		{faultproxy.Deliver, true, "the response", true},
		{faultproxy.DropRequest, false, "", false},
		{faultproxy.DropResponse, true, "", false},
		{faultproxy.CutResponse, true, "the re", false},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			arrived.Store("")
			requests := make(chan *faultproxy.Request, 1)
			proxy, err := faultproxy.Start(service.URL, func(r *faultproxy.Request) faultproxy.Fault {
				requests <- r
				return test.fault
			})
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL("a worker")+"/x%2Fy?z=1", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
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
			if (err == nil) != test.whole || string(content) != test.response {
				t.Errorf("the client sees %q, %v", content, err)
			}
			const want = "POST /x%2Fy?z=1 DynamoDB_20120810.UpdateItem body"
			if got := arrived.Load(); (got == want) != test.arrives || !test.arrives && got != "" {
				t.Errorf("arrived: %q", got)
			}
			kept := <-requests
			if kept.Client != "a worker" || kept.Operation != "UpdateItem" {
				t.Errorf("request %+v", kept)
			}
			arrived.Store("")
			if err := kept.Deliver(t.Context()); err != nil || arrived.Load() != want {
				t.Errorf("late: %q, %v", arrived.Load(), err)
			}
		})
	}
}

// TestThrottledTransaction: a transaction that lacked capacity has one reason for each of its writes.
func TestThrottledTransaction(t *testing.T) {
	proxy, err := faultproxy.Start("http://127.0.0.1:1", func(r *faultproxy.Request) faultproxy.Fault {
		all := faultproxy.Throttles(r.Operation)
		return all[len(all)-1]
	})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("t"), Item: map[string]types.AttributeValue{}}}
	_, err = client(proxy).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put, put}})
	var codes []string
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range canceled.CancellationReasons {
			codes = append(codes, aws.ToString(reason.Code))
		}
	}
	if !slices.Equal(codes, []string{"None", "ThrottlingError"}) {
		t.Errorf("%v: reasons %v", err, codes)
	}
}

// TestGivenUp: the proxy notices a client that does not wait for the response.
func TestGivenUp(t *testing.T) {
	for name, waits := range map[string]bool{"a client that waits": true, "one that does not": false} {
		began, gone := make(chan struct{}), make(chan struct{})
		service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(began)
			<-gone
			time.Sleep(50 * time.Millisecond) // until the proxy sees the connection closed
		}))
		requests := make(chan *faultproxy.Request, 1)
		proxy, err := faultproxy.Start(service.URL, func(r *faultproxy.Request) faultproxy.Fault {
			requests <- r
			return faultproxy.Deliver
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			if !waits {
				cancel()
			}
			close(gone)
		}()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, proxy.URL("a worker"), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			err = response.Body.Close()
			if err != nil || !waits {
				t.Errorf("%s: a response, %v", name, err)
			}
		}
		sent := <-requests
		for i := 0; sent.GivenUp() == waits && i < 100; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		if sent.GivenUp() == waits {
			t.Errorf("%s: given up %t", name, sent.GivenUp())
		}
		cancel()
		proxy.Close()
		service.Close()
	}
}

// TestUnread: a client that closes its connection after the response has come, and has not read it, has given it up.
func TestUnread(t *testing.T) {
	served := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(served) }))
	defer service.Close()
	requests := make(chan *faultproxy.Request, 1)
	proxy, err := faultproxy.Start(service.URL, func(r *faultproxy.Request) faultproxy.Fault {
		requests <- r
		return faultproxy.Deliver
	})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	address, _ := strings.CutPrefix(proxy.URL(""), "http://")
	conn, err := net.Dial("tcp", strings.TrimSuffix(address, "/"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-served
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the response is here
		t.Fatal(err)
	}
	sent := <-requests
	if sent.GivenUp() {
		t.Error("given up before the client closes")
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	for i := 0; !sent.GivenUp() && i < 100; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if !sent.GivenUp() {
		t.Error("not given up")
	}
}

func client(p *faultproxy.Proxy) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(p.URL("a worker")), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}
