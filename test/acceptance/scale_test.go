package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/local/engine"
	"svcapi/shared/credit"
	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

// scale sets the project's shards from two hours ago on. A change that an operator makes takes effect later.
func (p *tenant) scale(t *testing.T, shards int) *credit.Store {
	t.Helper()
	made := svc[struct {
		Shards     int `json:"shards"`
		ShardsNext int `json:"shards_next"`
	}](t, "", "project", "scale", p.id, "--shards", fmt.Sprint(shards))
	if made.Shards != 1 || made.ShardsNext != shards {
		t.Errorf("svc project scale: %+v", made)
	}
	db := engine.Client(fixture.stack.DynamoDBURL)
	_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String("svc-local-projects"),
		Key:                       dynamo.Item{"pk": dynamo.Text(p.id), "sk": dynamo.Text("project")},
		UpdateExpression:          aws.String("SET shards_since = :past"),
		ExpressionAttributeValues: dynamo.Item{":past": dynamo.Text(time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339))},
	})
	if err != nil {
		t.Fatal(err)
	}
	forget()
	return fixture.stack.Credit
}

// TestWalletInShards checks docs/decisions/money.md#shards: a wallet with several shards pays for exactly the requests
// that its total suffices for, whichever function charges it. The balance is the sum of the shards, and an operator's
// alert compares with the sum.
func TestWalletInShards(t *testing.T) {
	local(t)
	t.Parallel()
	const shards = 4
	for _, c := range []struct {
		operation string
		connect   func(*tenant)
		path      string
		body      string
	}{
		{credit.SMS, func(p *tenant) { p.connect(t, integration{vendor: "quicksend", mode: project.Managed}) }, send, single(number(), "Hello")},
		{credit.BurnerEmailShield, func(p *tenant) {
			p.connect(t, integration{kind: project.Security, vendor: "vpnapi", mode: project.Managed})
		}, burner, email("a@example.com")},
		{credit.Location, func(p *tenant) {
			p.connect(t, integration{kind: project.Location, vendor: "ipinfo", mode: project.Managed})
		}, location, ip("112.134.1.1")},
		{credit.Barcode, func(p *tenant) { p.drawing(t, project.Managed) }, barcodes, `{"data":"12345","type":"C128"}`},
		{credit.PDF, func(p *tenant) { p.printing(t, project.Managed) }, pdfs, `{"html":"<p>Hello</p>"}`},
	} {
		t.Run(c.operation, func(t *testing.T) {
			t.Parallel()
			p := plan{credits: shards * price(c.operation)}.make(t)
			c.connect(p)
			store := p.scale(t, shards)
			svc[any](t, "", "credit", "alert", p.id, fmt.Sprint(price(c.operation)))
			var statuses []int
			for range shards + 1 {
				if a := (request{path: c.path, body: c.body, as: p.dev}).send(t); a != nil {
					statuses = append(statuses, a.status)
				}
			}
			if fmt.Sprint(statuses) != "[200 200 200 200 402]" {
				t.Errorf("%v, want %d successes and a 402", statuses, shards)
			}
			wallet, err := store.Wallet(t.Context(), p.id)
			if err != nil || wallet.Shards != shards || wallet.Balance != 0 || p.balance(t) != 0 {
				t.Errorf("wallet %+v, %v", wallet, err)
			}
			if entries := p.ledger(t); len(entries) != shards+1 { // the grant
				t.Errorf("%d entries in the ledger", len(entries))
			}
			if result, err := fixture.stack.Invoke(t.Context(), "SettleFunction", []byte("{}")); err != nil || result.FunctionError != "" {
				t.Errorf("the settler: %v %s", err, result.Payload)
			}
		})
	}
}
