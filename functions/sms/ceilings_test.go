package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

// ceilingTime is the time for the sends of a request on which the documented ceilings rest: requestTime less a second
// for what comes before the sends.
const ceilingTime = requestTime - time.Second

// ceiling returns the number of recipients that a vendor takes within a request where each call takes a time. The
// delivery itself computes the number, with the vendor's pace, concurrency and batches, and a clock that does not wait.
func ceiling(t *testing.T, v vendors.Vendor, response time.Duration) (accepted int) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(&fakeVendor{pace: v.Pace, atOnce: v.Concurrency, batch: v.Batch, does: slow(response)})
		ctx, cancel := context.WithTimeout(t.Context(), ceilingTime)
		defer cancel()
		accepted = countByStatus(b.send(ctx, t, bulkSame, 10_000))["accepted"]
	})
	return accepted
}

// docs/decisions/sms.md#bulk: docs/sms.md and openapi.yaml name the number of recipients that fit into a request with
// each vendor, and docs/sms.md what the vendor supports.
func TestCeilings(t *testing.T) {
	page, err := os.ReadFile("../../docs/sms.md")
	must.Succeed(t, err)
	contract, err := os.ReadFile("../../openapi.yaml")
	must.Succeed(t, err)
	yes := map[bool]string{true: "yes", false: "no"}
	var ceilings, short []string
	for _, v := range vendors.NewTable(aws.Config{}) {
		adapter := v.New(upstream.New(upstream.Config{}), upstream.Account{})
		same := v.Batch > 1
		_, different := adapter.(vendors.DifferentSender)
		_, balance := adapter.(vendors.Balancer)
		_, cost := adapter.(vendors.CostChecker)
		_, status := adapter.(vendors.StatusChecker)
		row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s | ", v.Name, yes[same], yes[different], yes[balance],
			yes[cost], yes[status])
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/sms.md lacks the row %s…", row)
		}
		if v.Name == project.TestVendor { // without a ceiling
			continue
		}
		pace, batch := "–", "1"
		if v.Pace > 0 {
			pace = fmt.Sprint(v.Pace)
		}
		calls := v.Concurrency
		if same {
			batch, calls = fmt.Sprint(v.Batch), min(calls, batchesAtOnce)
		}
		one, two := ceiling(t, v, time.Second), ceiling(t, v, 2*time.Second)
		ceilings = append(ceilings, fmt.Sprintf("| %s | %s | %d | %s | %s | %s |\n", v.Name, batch, calls, pace,
			grouped(one), grouped(two)))
		short = append(short, fmt.Sprintf("`%s` %s", v.Name, grouped(one)))
	}
	if want := strings.Join(ceilings, ""); !strings.Contains(string(page), want) {
		t.Errorf("docs/sms.md lacks the rows\n%s", want)
	}
	if want := strings.Join(short, ", "); !strings.Contains(strings.Join(strings.Fields(string(contract)), " "), want) {
		t.Errorf("openapi.yaml lacks: %s", want)
	}
}

// grouped formats a number of up to six digits with a comma.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
