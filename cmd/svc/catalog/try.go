package catalog

import (
	"context"
	"errors"
	"net/netip"

	"svcapi/cmd/svc/app"
	location "svcapi/functions/location/vendors"
	security "svcapi/functions/security/vendors"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/iplookup"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// anyAddress is what vendors of look-ups are asked for when an account is tried: a public resolver's.
var anyAddress = netip.MustParseAddr("9.9.9.9")

// ErrCannotTry says that a vendor has no call that would try an account without effect.
var ErrCannotTry = errors.New("the vendor has no call that tries an account without sending anything")

// Try makes one call with an account that sends and changes nothing, and returns what the vendor's response says.
func Try(ctx context.Context, s *app.Stack, account upstream.Account) (string, error) {
	switch account.Integration.Kind {
	case project.SMS:
		vendor := sms.NewTable(s.AWS).Find(account.Integration.Vendor)
		if vendor == nil {
			return "", ErrCannotTry
		}
		balancer, ok := vendor.New(s.Vendors, account).(sms.Balancer)
		if !ok {
			return "", ErrCannotTry
		}
		balance, err := balancer.Balance(ctx)
		return "balance at the vendor: " + balance, err
	case project.Security:
		return lookUp(ctx, s, security.Table(), account)
	case project.Location:
		return lookUp(ctx, s, location.Table(), account)
	}
	return "", ErrCannotTry
}

// lookUp asks a vendor of look-ups once.
func lookUp[T any](ctx context.Context, s *app.Stack, rows []iplookup.Vendor[T], account upstream.Account) (string, error) {
	vendor := iplookup.Find(rows, account.Integration.Vendor)
	if vendor == nil || vendor.OnDisk() {
		return "", ErrCannotTry
	}
	_, err := vendor.Ask(ctx, iplookup.Caller{Client: s.Vendors, Account: account}, anyAddress)
	if errors.Is(err, iplookup.ErrUnknown) {
		err = nil
	}
	return "the vendor answers look-ups", err
}
