package acceptance

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"svcapi/local/engine"
	"svcapi/shared/attr"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// scale keeps the project in parts, at once: what the operator asks for takes effect later.
func (p *tenant) scale(t *testing.T, parts int) *credit.Store {
	t.Helper()
	made := svc[struct {
		Parts     int
		PartsNext int `json:"parts_next"`
	}](t, "", "project", "scale", p.id, "--parts", fmt.Sprint(parts))
	if made.Parts != 1 || made.PartsNext != parts {
		t.Errorf("svc project scale: %+v", made)
	}
	db := engine.Client(sut.stack.DynamoDBURL)
	_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String("svc-local-projects"),
		Key:                       attr.Item{"pk": attr.Text(p.id), "sk": attr.Text("project")},
		UpdateExpression:          aws.String("SET parts_since = :past"),
		ExpressionAttributeValues: attr.Item{":past": attr.Text(time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339))},
	})
	if err != nil {
		t.Fatal(err)
	}
	forget()
	return credit.NewStore(db, credit.Tables{Wallets: "svc-local-wallets", Ledger: "svc-local-ledger"})
}

// A wallet in parts pays for exactly what its total can, whichever function spends it: no 402 while the total suffices,
// and nothing beyond it. The balance is the sum, and what the operator set an alert at is compared with the sum.
func TestWalletInParts(t *testing.T) {
	local(t)
	t.Parallel()
	const parts = 4
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
			p := plan{credits: parts * price(c.operation)}.make(t)
			c.connect(p)
			store := p.scale(t, parts)
			svc[any](t, "", "credit", "alert", p.id, fmt.Sprint(price(c.operation)))
			var statuses []int
			for range parts + 1 {
				if a := (request{path: c.path, body: c.body, as: p.dev}).send(t); a != nil {
					statuses = append(statuses, a.status)
				}
			}
			if fmt.Sprint(statuses) != "[200 200 200 200 402]" {
				t.Errorf("%v, want %d successes and a 402", statuses, parts)
			}
			wallet, err := store.Wallet(t.Context(), p.id)
			if err != nil || wallet.Parts != parts || wallet.Balance != 0 || p.balance(t) != 0 {
				t.Errorf("wallet %+v, %v", wallet, err)
			}
			if entries := p.ledger(t); len(entries) != parts+1 { // the grant
				t.Errorf("%d entries in the ledger", len(entries))
			}
			if result, err := sut.stack.Invoke(t.Context(), "SettleFunction", []byte("{}")); err != nil || result.FunctionError != "" {
				t.Errorf("the settler: %v %s", err, result.Payload)
			}
		})
	}
}

// docs/decisions.md#shards: never more than the limit in a window, and all of it can be used, also where its counter is
// kept in parts.
func TestLimitInParts(t *testing.T) {
	local(t)
	t.Parallel()
	const limit, requests = 40, 60
	p := plan{limit: limit, credits: 1_000_000}.make(t).drawing(t, project.Managed)
	p.scale(t, 16)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	statuses := map[int]int{}
	for range requests {
		group.Go(func() error {
			if a := (request{path: barcodes, body: `{"data":"12345","type":"C128"}`, as: p.dev}).send(t); a != nil {
				mu.Lock()
				defer mu.Unlock()
				statuses[a.status]++
			}
			return nil
		})
	}
	_ = group.Wait()
	if statuses[200] != limit || statuses[429] != requests-limit {
		t.Errorf("%v, want %d successes and %d refused", statuses, limit, requests-limit)
	}
	if got, want := p.balance(t), 1_000_000-limit*price(credit.Barcode); got != want {
		t.Errorf("balance %d, want %d", got, want)
	}
}
