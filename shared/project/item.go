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
// Project.Version.
const (
	SortProject     = "project"
	SortCredential  = "credential#"
	SortIntegration = "integration#"
)

// Fields maps the members of an item's JSON object to pointers to their values.
type Fields map[string]any

// Fields returns the fields of a project's own item.
func (p *Project) Fields() Fields {
	return Fields{
		"name": &p.Name, "paused": &p.Paused, "created": &p.Created, "closed": &p.Closed, "hash_key": &p.HashKey,
		"limit_requests": &p.Limit.Requests, "limit_seconds": &p.Limit.Window, "recipient_limits": &p.Limits.Recipients,
		"daily_credits": &p.Limits.DailyCredits, "daily_units": &p.Limits.DailyUnits,
		"trial": &p.Trial, "trial_destinations": &p.TrialDestinations, "prices": &p.Prices,
	}
}

// Fields returns the fields of a credential's item.
func (c *Credential) Fields() Fields {
	return Fields{"client_id": &c.ClientID, "environment": &c.Environment, "active": &c.Active, "secrets": &c.Secrets}
}

// Fields returns the fields of an integration's item.
func (i *Integration) Fields() Fields {
	return Fields{
		"environment": &i.Environment, "kind": &i.Kind, "vendor": &i.Vendor, "mode": &i.Mode,
		"active": &i.Active, "set_aside": &i.SetAside, "priority": &i.Priority, "settings": &i.Settings,
		"updated": &i.Updated,
	}
}

// Decode returns the record that the items of a project's partition form, or nil without the project's own item.
func Decode(items []dynamo.Item) (rec *Record, err error) {
	var all Record
	for _, it := range items {
		sort := dynamo.TextOf(it["sk"])
		switch {
		case sort == SortProject:
			rec, all.ID = &all, dynamo.TextOf(it["pk"])
			if all.Version, err = dynamo.NumberOf(it["version"]); err == nil {
				err = all.Project.Fields().decode(it)
			}
		case strings.HasPrefix(sort, SortCredential):
			var c Credential
			err = c.Fields().decode(it)
			all.Credentials = append(all.Credentials, c)
		case strings.HasPrefix(sort, SortIntegration):
			var i Integration
			err = i.Fields().decode(it)
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
		json.WithUnmarshalers(json.UnmarshalFunc(func(text []byte, d *time.Duration) error {
			n, err := strconv.ParseInt(string(text), 10, 64)
			*d = time.Duration(n) * time.Second
			return err
		})))
})

// decode reads all fields from an item. A missing member, and null, is an error.
func (f Fields) decode(it dynamo.Item) error {
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
