package project

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/dynamo"
)

// The items of a project's partition. The partition key is the project ID, and the sort key is one of:
//
//	project
//	credential#<client ID>
//	integration#<environment>#<kind>#<vendor>
//
// The attribute v of an item holds its fields as a JSON object. The attribute version of the project's own item is
// Project.version.
const (
	sortProject     = "project"
	sortCredential  = "credential#"
	sortIntegration = "integration#"
)

type item = dynamo.Item

// fields maps the members of an item's JSON object to pointers to their values.
type fields map[string]any

func (p *Project) fields() fields {
	return fields{
		"name": &p.Name, "paused": &p.Paused, "created": &p.Created, "closed": &p.Closed, "hash_key": &p.hashKey,
		"limit_requests": &p.Limit.Requests, "limit_seconds": &p.Limit.Window, "recipient_limits": &p.Limits.Recipients,
		"daily_credits": &p.Limits.DailyCredits, "daily_units": &p.Limits.DailyUnits,
		"trial": &p.Trial, "trial_destinations": &p.TrialDestinations,
	}
}

func (c *Credential) fields() fields {
	return fields{"client_id": &c.ClientID, "environment": &c.Environment, "active": &c.Active, "secrets": &c.Secrets}
}

func (i *Integration) fields() fields {
	return fields{
		"environment": &i.Environment, "kind": &i.Kind, "vendor": &i.Vendor, "mode": &i.Mode,
		"active": &i.Active, "set_aside": &i.SetAside, "priority": &i.Priority, "settings": &i.Settings,
		"updated": &i.Updated,
	}
}

func projectItem(p *Project) item {
	it := p.fields().item(p.ID, sortProject)
	it["version"] = dynamo.Number(p.version)
	return it
}

func credentialItem(projectID string, c *Credential) item {
	return c.fields().item(projectID, sortCredential+c.ClientID)
}

func integrationItem(projectID string, i *Integration) item {
	return i.fields().item(projectID, sortIntegration+string(i.Environment)+"#"+string(i.Kind)+"#"+i.Vendor)
}

// decode returns the record that the items of a project's partition form, or nil where the project's own item is
// missing.
func decode(items []item) (rec *Record, err error) {
	var all Record
	for _, it := range items {
		sort := dynamo.TextOf(it["sk"])
		switch {
		case sort == sortProject:
			rec, all.ID = &all, dynamo.TextOf(it["pk"])
			if all.version, err = dynamo.NumberOf(it["version"]); err == nil {
				err = all.Project.fields().decode(it)
			}
		case strings.HasPrefix(sort, sortCredential):
			var c Credential
			err = c.fields().decode(it)
			all.Credentials = append(all.Credentials, c)
		case strings.HasPrefix(sort, sortIntegration):
			var i Integration
			err = i.fields().decode(it)
			i.ID = IntegrationID(i.Environment, i.Kind, i.Vendor)
			all.Integrations = append(all.Integrations, i)
		}
		if err != nil {
			return nil, fmt.Errorf("item %s of project %s: %w", sort, dynamo.TextOf(it["pk"]), err)
		}
	}
	return rec, nil
}

// format returns the options of the JSON objects. A duration is a number of seconds.
var format = sync.OnceValue(func() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true),
		json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) {
			return strconv.AppendInt(nil, int64(d/time.Second), 10), nil
		})),
		json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, d *time.Duration) error {
			n, err := strconv.ParseInt(string(text), 10, 64)
			*d = time.Duration(n) * time.Second
			return err
		})))
})

func (f fields) item(pk, sk string) item {
	text, err := json.Marshal(f, format())
	if err != nil {
		panic(fmt.Errorf("JSON of a project's item: %w", err)) // each field has a JSON form
	}
	return item{"pk": dynamo.Text(pk), "sk": dynamo.Text(sk), "v": dynamo.Text(string(text))}
}

// decode reads all fields from an item. A missing member, and null, is an error.
func (f fields) decode(it item) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(dynamo.TextOf(it["v"])), &members); err != nil {
		return err
	}
	for name, pointer := range f {
		if members[name].Kind() == 'n' {
			return fmt.Errorf("field %s is null", name)
		}
		if err := json.Unmarshal(members[name], pointer, format()); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}
