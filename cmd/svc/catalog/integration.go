package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"svcapi/cmd/svc/app"
	"svcapi/shared/project"
	"svcapi/shared/upstream"
)

// View is an integration in the format for programs.
type View struct {
	project.Integration
	// Incomplete is the reason why the integration cannot be used; empty for a complete integration.
	Incomplete string    `json:"incomplete"`
	Updated    time.Time `json:"updated"`
	SetAside   bool      `json:"set_aside"` // while the vendor is out
}

// ViewAll returns a project's integrations.
func ViewAll(ctx context.Context, s *app.Stack, rec *project.Record) ([]View, error) {
	views := []View{}
	for _, i := range rec.Integrations {
		v, err := ViewOf(ctx, s, rec.ID, i)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// ViewOf returns one integration, and validates whether the integration is complete.
func ViewOf(ctx context.Context, s *app.Stack, projectID string, i project.Integration) (View, error) {
	v := View{Integration: i, Updated: i.Updated, SetAside: i.SetAside}
	_, err := Resolve(ctx, s, projectID, i)
	_, unknown := errors.AsType[*app.FailureError](err) // the kind or the vendor
	if unknown || errors.Is(err, upstream.ErrIncomplete) {
		v.Incomplete, err = strings.TrimPrefix(err.Error(), upstream.ErrIncomplete.Error()+": "), nil
	}
	return v, err
}

// Resolve returns the account of an integration, with its stored secret fields.
func Resolve(ctx context.Context, s *app.Stack, projectID string, i project.Integration) (upstream.Account, error) {
	o, err := Find(string(i.Kind), i.Vendor)
	if err != nil {
		return upstream.Account{}, err
	}
	return s.Vendors.Resolve(ctx, projectID, i, &o.Spec, s.Secrets)
}

// State returns the state of an integration for people.
func State(i project.Integration) string {
	switch {
	case i.Active:
		return "active"
	case i.SetAside:
		return "set aside"
	}
	return "inactive"
}

// Table returns integrations for people.
func Table(views []View) app.Table {
	t := app.Table{
		Header: []string{"ENVIRONMENT", "KIND", "VENDOR", "MODE", "STATE", "PRIORITY", "SETTINGS", "INCOMPLETE"},
		Empty:  `No integrations. "svc integration set" creates one.`,
	}
	for _, v := range views {
		var settings []string
		for _, name := range slices.Sorted(maps.Keys(v.Settings)) {
			settings = append(settings, name+"="+v.Settings[name])
		}
		t.Rows = append(t.Rows, []string{
			string(v.Environment), string(v.Kind), v.Vendor, string(v.Mode), State(v.Integration),
			strconv.Itoa(v.Priority), strings.Join(settings, " "), v.Incomplete,
		})
	}
	return t
}
