package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/api"
	"svcapi/shared/project"
	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// documentedCodes are the failures of each vendor that local/sandbox/sms.yaml names, by their classes; "": accepted.
var documentedCodes = map[string]map[upstream.Class]string{
	"quicksend":   {upstream.Rejected: "rejected", upstream.AccountRefused: "insufficient", upstream.CredentialsRefused: "unauthorized,not allowed", upstream.Unusable: "without id"},
	"notifylk":    {upstream.Rejected: "blocked", upstream.AccountRefused: "insufficient", upstream.CredentialsRefused: "unauthorized"},
	"textlk":      {upstream.Rejected: "sender", upstream.AccountRefused: "insufficient", upstream.CredentialsRefused: "unauthenticated"},
	"ultimatesms": {upstream.Rejected: "sender", upstream.AccountRefused: "insufficient", upstream.CredentialsRefused: "unauthenticated"},
	"smslenz":     {upstream.Rejected: "sender", upstream.AccountRefused: "insufficient", upstream.CredentialsRefused: "unauthorized"},
	"dialog": {
		"": "1", upstream.Rejected: "2001,2002,2003,2004,2005,2009,2011", upstream.AccountRefused: "2008,2010,2013", upstream.CredentialsRefused: "2006,2007",
	},
	"dialogv2": {
		"": "104", upstream.Rejected: "101,107,109", upstream.AccountRefused: "108,110,111,112,113,114,118,119", upstream.TooFast: "117",
		upstream.CredentialsRefused: "100,102,105,106,115,116", upstream.Unusable: "103,999",
	},
	"hutch": {upstream.Rejected: "mask", upstream.CredentialsRefused: "may not send,token refused"},
	"twilio": {
		upstream.Rejected: "21211,21608,21610,21612,21614", upstream.AccountRefused: "21606,21659", upstream.TooFast: "20429,21611",
		upstream.CredentialsRefused: "20003,20404",
	},
	"aws": {
		upstream.Rejected: "ConflictException,ValidationException", upstream.AccountRefused: "ResourceNotFoundException,ServiceQuotaExceededException",
		upstream.TooFast: "ThrottlingException", upstream.Unusable: "InternalServerException",
		upstream.CredentialsRefused: "AccessDeniedException,InvalidSignatureException,UnrecognizedClientException",
	},
}

// docs/decisions.md#vendor-outcomes: what follows from each documented code for the recipient, the charge and the next account.
func TestDocumentedCodes(t *testing.T) {
	follows := map[upstream.Class]struct {
		status  status // where no other account is left
		charged bool
		next    bool // the next account gets the message
		failure string
	}{
		"":                          {accepted, true, false, ""},
		upstream.Rejected:           {rejected, false, false, "502 rejected %s reached"},
		upstream.AccountRefused:     {rejected, false, true, "502 account_refused %s reached"},
		upstream.TooFast:            {rejected, false, true, "502 too_fast %s reached"},
		upstream.CredentialsRefused: {rejected, false, true, "502 credentials_refused %s reached"},
		upstream.Unusable:           {uncertain, true, false, "502 unusable_response %s reached uncertain"},
	}
	for vendor, classes := range documentedCodes {
		for class, codes := range classes {
			want := follows[class]
			for code := range strings.SplitSeq(codes, ",") {
				t.Run(vendor+" "+code, func(t *testing.T) {
					s, err := sandbox.Start()
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					if err := s.SetRules(sandbox.Rule{Vendor: vendor, Operation: "send", Outcome: sandbox.Outcome(code)}); err != nil {
						t.Fatal(err)
					}
					alone := sendThrough(t, s, vendor)
					if got := upstream.CodeOf(alone[0].err); class != "" && strings.ContainsAny(code, "0123456789E") && got != code {
						t.Errorf("code %q", got)
					}
					failed := failure(alone)
					charged := failed == nil || strings.HasSuffix(described(failed), "uncertain")
					if got := described(failed); strings.Contains(want.failure, "%s") && got != fmt.Sprintf(want.failure, vendor) || alone[0].status() != want.status || charged != want.charged {
						t.Errorf("%s, charged %t, %q", alone[0].status(), charged, got)
					}
					next := map[bool]string{true: "textlk", false: "ultimatesms"}[vendor == "ultimatesms"]
					chained := sendThrough(t, s, vendor, next)
					if asked := chained[0].vendor == next; asked != want.next || asked && chained[0].status() != accepted {
						t.Errorf("with a next account %s of %s", chained[0].status(), chained[0].vendor)
					}
				})
			}
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
	g.deliver(ctx, accounts, r, func(context.Context, []*api.Message) {})
	return r.recipients
}

// sandboxChain returns a group and accounts of the sandbox's vendors.
func sandboxChain(s *sandbox.Server, chain ...string) (*group, []upstream.Account) {
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), RetryMaxAttempts: 1}
	g := &group{
		client: upstream.New(upstream.Config{TimeoutSeconds: 5, Local: true}), breakers: upstream.NewBreakers(), timeout: callTimeout,
		vendors: vendors.NewTable(cfg), secrets: secret.New(secret.NewClient(cfg), "dev", secret.Config{}, nil),
	}
	var accounts []upstream.Account
	for _, name := range chain {
		accounts = append(accounts, upstream.Account{
			Project: "p", Integration: project.Integration{ID: name, Kind: project.SMS, Vendor: name}, Endpoint: s.URL + "/" + name,
			Settings: map[string]string{"sender_id": "Demo"}, Secrets: sandbox.Accounts[name],
		})
	}
	return g, accounts
}
