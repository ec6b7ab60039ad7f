package vendors

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/testvalue"
	"svcapi/shared/upstream"
)

// testVendor responds by the table of shared/testvalue, calls nobody and needs no account
// (docs/decisions/extensions.md#test-vendor).
func testVendor() Vendor {
	return Vendor{
		Spec: upstream.Spec{Name: project.TestVendor, Title: "Test values, in development only",
			Settings: []upstream.Field{{Name: SenderID, Description: "sender of requests that name none"}}},
		Concurrency: unpublished,
		New:         func(*upstream.Client, upstream.Account) Adapter { return testAdapter{} },
	}
}

type testAdapter struct{}

// Send implements Adapter.
func (testAdapter) Send(ctx context.Context, m Message) (Receipt, error) {
	value := testvalue.Of("0" + strings.TrimPrefix(m.To[0], "+94"))
	if value.Outcome == testvalue.Slow {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			value.Outcome = testvalue.Hang
		}
	}
	if err := upstream.TestFailure(value); err != nil {
		return Receipt{}, err
	}
	return Receipt{Status: "success", ID: "test-" + strings.ToLower(rand.Text()[:12])}, nil
}

// Balance implements Balancer.
func (testAdapter) Balance(context.Context) (string, error) { return "0", nil }

// CheckStatus implements StatusChecker. An accepted message is delivered at once.
func (testAdapter) CheckStatus(_ context.Context, s PastSend) (Status, error) {
	if s.ID == "" {
		return Status{State: StateUnknown, Reason: ReasonIDUnknown}, nil
	}
	return Status{State: StateDelivered, Word: "delivered"}, nil
}
