package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/uuid"

	ask "svcapi/functions/sms/uncertain" // this package has a constant of that name
	"svcapi/functions/sms/vendors"
	"svcapi/local/sandbox"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/request"
	"svcapi/shared/secret"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/secretstest"
	"svcapi/test/wallettest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// TestDeadLeasedSend checks which transaction ID the resolver asks for after a send has died: the ID that the vendor
// has received. The send has a slot of a lease, the chain has two accounts, and in one row the request has reserved
// again under another key (docs/decisions/extensions.md#resolver).
func TestDeadLeasedSend(t *testing.T) {
	for slot, settledBeforeMark := range map[string]bool{".01": false, ".00": true} { // of the lease before, of the next
		t.Run(slot, func(t *testing.T) {
			const id = "acme"
			ctx := t.Context()
			s, err := sandbox.Start()
			must.Succeed(t, err)
			t.Cleanup(func() { _ = s.Close() })
			client, tables := enginetest.Client(t)
			store, projects := books.NewStore(client, tables.Tables), admin.NewStore(client, tables.Projects)
			_, err = projects.CreateProject(ctx,
				project.Project{ID: id, Name: "p", Limit: project.RateLimit{Requests: 100, Window: time.Hour}})
			must.Succeed(t, errors.Join(err, store.CreateWallet(ctx, id),
				store.Grant(ctx, wallettest.Movement(id, time.Now(), "g", 1_000_000))))
			key, password, err := projects.IssueCredential(ctx, id, project.Production)
			must.Succeed(t, err)
			reader := secretsmanager.New(secretstest.Start(t))
			for _, vendor := range []string{"dialogv2", "quicksend"} {
				must.Succeed(t, secret.NewWriter(reader, "test").Put(ctx, project.SMS, upstream.ManagedOwner,
					secret.Change{Environment: project.Production, Vendor: vendor, After: sandbox.Account(vendor)}))
				must.Succeed(t, projects.PutIntegration(ctx, id, project.Integration{Kind: project.SMS, Vendor: vendor,
					Environment: project.Production, Mode: project.Managed, Active: true,
					Settings: map[string]string{"sender_id": "Demo", "endpoint": s.URL + "/" + vendor}}))
			}
			must.Succeed(t, s.SetRules(sandbox.Rule{Vendor: "quicksend", Operation: "send", Outcome: sandbox.Closed}))

			// The fifth request has the second slot of a lease, and every response of its capture is lost.
			through, sends := &wallettest.Faults{Of: "PutItem", With: `"captured"`, List: "....xxx"}, 0
			through.Before = func(operation string) {
				if operation == "PutItem" && settledBeforeMark && sends == 5 {
					sends++
					wallettest.SettleAll(t, store)
				}
			}
			db := through.Client(t)
			log := telemetry.New(io.Discard, telemetry.Config{})
			service := request.New(request.Config{Stage: "test", ProjectsTable: tables.Projects,
				TransientTable: tables.Transient, WalletsTable: tables.Wallets, LedgerTable: tables.Ledger,
				ProjectCacheSeconds: 10, Prices: wallet.Prices{wallet.SMS: 10}}, db, log)
			cached := upstream.NewSecretCache(reader, "test", upstream.SecretConfig{}, log)
			table := vendors.NewTable(aws.Config{Region: "eu-west-1"})
			g := &group{client: upstream.New(upstream.Config{TimeoutSeconds: 5, Local: true}), secrets: cached,
				breakers: upstream.NewBreakers(), vendors: func() vendors.Table { return table },
				wallet: service.Stores.Wallet, timeout: callTimeout}
			handle := request.Lambda(service.Handler(g.send()))
			for sends < 5 {
				sends++
				response, err := handle(lambdacontext.NewContext(ctx,
					&lambdacontext.LambdaContext{AwsRequestID: uuid.NewString()}), events.APIGatewayProxyRequest{
					HTTPMethod: "POST", Path: "/api/v1/sms/send", Body: `{"to":"+94771234567","send_method":"single","message":"m"}`,
					Headers:        map[string]string{"X-API-KEY": key, "X-API-SECRET": password, "X-ENV": "production"},
					RequestContext: events.APIGatewayProxyRequestContext{RequestTimeEpoch: time.Now().UnixMilli()},
				})
				if err != nil || response.StatusCode != 200 {
					t.Fatalf("%d %s, %v", response.StatusCode, response.Body, err)
				}
			}
			wallettest.SettleAll(t, store)

			ids := func(operation string) (found []uint64) {
				for _, c := range s.Calls() {
					var body struct {
						ID uint64 `json:"transaction_id"`
					}
					if c.Vendor == "dialogv2" && c.Operation == operation && json.Unmarshal([]byte(c.Body), &body) == nil {
						found = append(found, body.ID)
					}
				}
				return found
			}
			asker := &ask.Asker{Credits: store, Projects: projects.Store, Client: g.client, Secrets: cached, Vendors: table,
				Absent: time.Minute, Now: time.Now, Actor: "test"}
			left, err := store.Uncertain(ctx, id)
			if err != nil || len(left) != 1 {
				t.Fatalf("%+v, %v", left, err)
			}
			if !strings.HasSuffix(string(left[0].Key), slot) {
				t.Errorf("the charge has the key %s", left[0].Key)
			}
			verdict, _, err := asker.Resolve(ctx, id, left[0], map[string]bool{})
			sent, asked := ids("send"), ids("status")
			if err != nil || verdict != books.VerdictConfirmed || len(sent) != 5 || !slices.Equal(asked, sent[4:]) {
				t.Errorf("%s, %v: sent %d, asked about %d", verdict, err, sent, asked)
			}
		})
	}
}
