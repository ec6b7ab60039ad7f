package catalog

import (
	"context"
	"errors"
	"net/netip"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	lookup "svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// anyAddress is the address of a test look-up: a public resolver.
var anyAddress = netip.MustParseAddr("9.9.9.9")

// ErrNoTest reports that a vendor has no call that tests an account without an effect.
var ErrNoTest = errors.New("the vendor has no call that tests an account without sending anything")

// TestAccount makes one call with an account that sends and changes nothing, and returns its result for the operator.
func TestAccount(ctx context.Context, s *app.Stack, account upstream.Account) (string, error) {
	switch account.Integration.Kind {
	case project.SMS:
		vendor := sms.NewTable(s.AWS).Find(account.Integration.Vendor)
		if vendor == nil {
			return "", ErrNoTest
		}
		balancer, ok := vendor.New(s.Vendors, account).(sms.Balancer)
		if !ok {
			return "", ErrNoTest
		}
		balance, err := balancer.Balance(ctx)
		return "balance at the vendor: " + balance, err
	case project.Security:
		return lookUp(ctx, s, lookup.Risks(), account)
	case project.Location:
		return lookUp(ctx, s, lookup.Places(), account)
	}
	return "", ErrNoTest
}

// lookUp makes one look-up at a vendor.
func lookUp[T any](ctx context.Context, s *app.Stack, rows []lookup.Vendor[T], account upstream.Account) (string, error) {
	vendor := lookup.Find(rows, account.Integration.Vendor)
	if vendor == nil || vendor.OnDisk() {
		return "", ErrNoTest
	}
	_, err := vendor.Ask(ctx, lookup.Caller{Client: s.Vendors, Account: account}, anyAddress)
	if errors.Is(err, lookup.ErrUnknown) {
		err = nil
	}
	return "the vendor responds to look-ups", err
}
