package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.yaml.in/yaml/v3"

	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

// TestDocumentedCodes checks what follows from each documented response of each vendor
// (docs/decisions/sms.md#vendor-outcomes). The sandbox documents exactly the responses of the table.
func TestDocumentedCodes(t *testing.T) {
	var table map[string]map[string]string
	var documented map[string]struct{ Responses map[string]any }
	for file, into := range map[string]any{"testdata/codes.yaml": &table, "../../local/sandbox/sms.yaml": &documented} {
		if content, err := os.ReadFile(file); err != nil || yaml.Unmarshal(content, into) != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if len(table)+1 != len(vendors.NewTable(aws.Config{})) || // beside the vendor "test"
		len(documented) != len(table) {
		t.Fatalf("%d vendors in the table, %d in the sandbox", len(table), len(documented))
	}
	for vendor, rows := range table {
		if got, want := slices.Sorted(maps.Keys(documented[vendor].Responses)),
			slices.Sorted(maps.Keys(rows)); !slices.Equal(got, want) {
			t.Errorf("%s: the sandbox documents %q, the table %q", vendor, got, want)
		}
		for code, row := range rows {
			want := strings.Join(strings.Fields(row), " ")
			if want == "of another call" {
				continue
			}
			t.Run(vendor+" "+code, func(t *testing.T) {
				s, err := sandbox.Start()
				must.Succeed(t, err)
				defer s.Close()
				if err := s.SetRules(sandbox.Rule{Vendor: vendor, Operation: "send", Outcome: sandbox.Outcome(code)}); err != nil {
					t.Fatal(err)
				}
				alone := sendThrough(t, s, vendor)
				class, charge, goesOn, response := "none", "charged", "ends", "200"
				if e, ok := errors.AsType[*request.Error](failure(alone)); ok {
					class, response = string(upstream.ClassOf(alone[0].err)),
						strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Status, e.Reason, e.VendorCode))
					if !e.Uncertain { // the pipeline charges for a result and for an uncertain error alone
						charge = "free"
					}
				}
				next := map[bool]string{true: "textlk", false: "ultimatesms"}[vendor == "ultimatesms"]
				if chained := sendThrough(t, s, vendor, next); chained[0].vendor == next && chained[0].status() == accepted {
					goesOn = "next"
				}
				if got := fmt.Sprintf("%s %s %s %s %s", class, alone[0].status(), charge, goesOn, response); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	}
}

// sendThrough sends one message along a chain of the sandbox's vendors, in so little time that no pause fits.
func sendThrough(t *testing.T, s *sandbox.Server, chain ...string) []recipient {
	t.Helper()
	g, accounts := sandboxChain(s, chain...)
	ctx, cancel := context.WithTimeout(t.Context(), 2900*time.Millisecond)
	defer cancel()
	r := bulk(single, 1)
	g.deliver(ctx, accounts, r)
	return r.recipients
}

// sandboxChain returns a group and accounts of the sandbox's vendors.
func sandboxChain(s *sandbox.Server, chain ...string) (*group, []upstream.Account) {
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: new("http://127.0.0.1:1"), RetryMaxAttempts: 1}
	g := &group{
		client: upstream.New(upstream.Config{TimeoutSeconds: 5,
			Local: true}), breakers: upstream.NewBreakers(), timeout: callTimeout,
		vendors: vendors.NewTable(cfg),
		secrets: upstream.NewSecretCache(upstream.NewSecretsClient(cfg), "dev", upstream.SecretConfig{}, nil),
	}
	var accounts []upstream.Account
	for _, name := range chain {
		accounts = append(accounts, upstream.Account{
			Integration: project.Integration{ID: name, Kind: project.SMS, Vendor: name}, Endpoint: s.URL + "/" + name,
			Settings: map[string]string{"sender_id": "Demo"}, Secrets: sandbox.Accounts[name],
		})
	}
	return g, accounts
}
