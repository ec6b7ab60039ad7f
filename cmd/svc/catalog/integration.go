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

// Integration is an integration as it is exported.
type Integration struct {
	Environment project.Environment `json:"environment"`
	Kind        project.Kind        `json:"kind"`
	Vendor      string              `json:"vendor"`
	Mode        project.Mode        `json:"mode"`
	Active      bool                `json:"active"`
	Priority    int                 `json:"priority"`
	Settings    map[string]string   `json:"settings"`
}

// Export returns an integration as it is exported.
func Export(i project.Integration) Integration {
	return Integration{i.Environment, i.Kind, i.Vendor, i.Mode, i.Active, i.Priority, i.Settings}
}

// Record returns the integration as it is stored.
func (i Integration) Record() project.Integration {
	return project.Integration{
		Kind: i.Kind, Environment: i.Environment, Vendor: i.Vendor, Mode: i.Mode, Active: i.Active, Priority: i.Priority, Settings: i.Settings,
	}
}

// View is an integration as programs read it.
type View struct {
	Integration
	// Incomplete says why the integration cannot be used as it is; empty when it can.
	Incomplete string    `json:"incomplete"`
	Updated    time.Time `json:"updated"`
}

// ViewAll views a project's integrations of one environment, or of both when env is empty.
func ViewAll(ctx context.Context, s *app.Stack, rec *project.Record, env project.Environment) ([]View, error) {
	views := []View{}
	for _, i := range rec.Integrations {
		if env != "" && i.Environment != env {
			continue
		}
		v, err := ViewOf(ctx, s, rec.ID, i)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// ViewOf views one integration.
func ViewOf(ctx context.Context, s *app.Stack, projectID string, i project.Integration) (View, error) {
	v := View{Integration: Export(i), Updated: i.Updated}
	_, err := Resolve(ctx, s, projectID, i)
	unknown, isUnknown := errors.AsType[*app.UsageError](err)
	switch {
	case errors.Is(err, upstream.ErrIncomplete):
		v.Incomplete = strings.TrimPrefix(err.Error(), upstream.ErrIncomplete.Error()+": ")
	case isUnknown:
		v.Incomplete = unknown.Error()
	case err != nil:
		return v, err
	}
	return v, nil
}

// Resolve returns the account of an integration, with its stored secret fields.
func Resolve(ctx context.Context, s *app.Stack, projectID string, i project.Integration) (upstream.Account, error) {
	o, err := Find(string(i.Kind), i.Vendor)
	if err != nil {
		return upstream.Account{}, err
	}
	return s.Vendors.Resolve(ctx, projectID, i, &o.Spec, s.Secrets)
}

// Table shows integrations to people.
func Table(views []View) app.Table {
	t := app.Table{
		Header: []string{"ENVIRONMENT", "KIND", "VENDOR", "MODE", "STATE", "PRIORITY", "SETTINGS", "INCOMPLETE"},
		Empty:  `No integrations. "svc integration set" makes one.`,
	}
	for _, v := range views {
		state := "inactive"
		if v.Active {
			state = "active"
		}
		var settings []string
		for _, name := range slices.Sorted(maps.Keys(v.Settings)) {
			settings = append(settings, name+"="+v.Settings[name])
		}
		t.Rows = append(t.Rows, []string{
			string(v.Environment), string(v.Kind), v.Vendor, string(v.Mode), state,
			strconv.Itoa(v.Priority), strings.Join(settings, " "), v.Incomplete,
		})
	}
	return t
}
