package project

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/dynamo"
)

// The SDK's attributevalue reads a missing attribute as a zero, and this code as an error; see also package dynamo.

// The items of a project's partition. The partition key is the project ID, and the sort key is one of:
//
//	project
//	credential#<client ID>
//	integration#<environment>#<kind>#<vendor>
const (
	sortProject     = "project"
	sortCredential  = "credential#"
	sortIntegration = "integration#"
)

type item = dynamo.Item

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func instant(t time.Time) types.AttributeValue { return dynamo.Text(t.UTC().Format(time.RFC3339)) }

func listOf[T any](values []T, encode func(T) types.AttributeValue) types.AttributeValue {
	list := make([]types.AttributeValue, len(values))
	for i, v := range values {
		list[i] = encode(v)
	}
	return &types.AttributeValueMemberL{Value: list}
}

func projectItem(p *Project) item {
	it := item{
		"pk":                 dynamo.Text(p.ID),
		"sk":                 dynamo.Text(sortProject),
		"name":               dynamo.Text(p.Name),
		"paused":             boolean(p.Paused),
		"limit_requests":     dynamo.Number(int64(p.Limit.Requests)),
		"limit_seconds":      dynamo.Number(int64(p.Limit.Window / time.Second)),
		"trial":              boolean(p.Trial),
		"trial_destinations": listOf(p.TrialDestinations, dynamo.Text),
		"created":            instant(p.Created),
		"version":            dynamo.Number(p.version),
	}
	if p.Shards.Count > 0 {
		it["shards"] = dynamo.Number(int64(p.Shards.Count))
		it["shards_before"] = dynamo.Number(int64(p.Shards.Before))
		it["shards_since"] = instant(p.Shards.Since)
	}
	p.Limits.encode(it)
	if p.recipientKey != nil {
		it["recipient_key"] = dynamo.Bytes(p.recipientKey)
	}
	return it
}

// encode adds the limits that are set to a project's item.
func (l Limits) encode(it item) {
	if len(l.Recipients) > 0 {
		it["recipient_limits"] = listOf(l.Recipients, func(r RecipientLimit) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: item{
				"messages": dynamo.Number(int64(r.Messages)), "seconds": dynamo.Number(int64(r.Window / time.Second)),
			}}
		})
	}
	for name, most := range map[string]int64{"daily_credits": l.DailyCredits, "daily_units": l.DailyUnits} {
		if most != 0 {
			it[name] = dynamo.Number(most)
		}
	}
}

func credentialItem(projectID string, c *Credential) item {
	return item{
		"pk":          dynamo.Text(projectID),
		"sk":          dynamo.Text(sortCredential + c.ClientID),
		"client_id":   dynamo.Text(c.ClientID),
		"environment": dynamo.Text(string(c.Environment)),
		"active":      boolean(c.Active),
		"secrets": listOf(c.Secrets, func(s SecretDigest) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: item{"digest": dynamo.Bytes(s.Digest[:]), "created": instant(s.Created)}}
		}),
	}
}

func integrationItem(projectID string, i *Integration) item {
	settings := make(item, len(i.Settings))
	for name, value := range i.Settings {
		settings[name] = dynamo.Text(value)
	}
	return item{
		"pk":          dynamo.Text(projectID),
		"sk":          dynamo.Text(sortIntegration + string(i.Environment) + "#" + string(i.Kind) + "#" + i.Vendor),
		"environment": dynamo.Text(string(i.Environment)),
		"kind":        dynamo.Text(string(i.Kind)),
		"vendor":      dynamo.Text(i.Vendor),
		"mode":        dynamo.Text(string(i.Mode)),
		"active":      boolean(i.Active),
		"priority":    dynamo.Number(int64(i.Priority)),
		"settings":    &types.AttributeValueMemberM{Value: settings},
		"updated":     instant(i.Updated),
	}
}

// decode returns the record that the items of a project's partition form, or nil where the project's own item is missing.
func decode(items []item) (*Record, error) {
	var rec Record
	found := false
	for _, it := range items {
		var err error
		r := reader{it, &err}
		switch sort := r.text("sk"); {
		case sort == sortProject:
			rec.Project, found = r.project(), true
		case strings.HasPrefix(sort, sortCredential):
			rec.Credentials = append(rec.Credentials, r.credential())
		case strings.HasPrefix(sort, sortIntegration):
			rec.Integrations = append(rec.Integrations, r.integration())
		}
		if err != nil {
			return nil, fmt.Errorf("item %s of project %s: %w", dynamo.TextOf(it["sk"]), dynamo.TextOf(it["pk"]), err)
		}
	}
	if !found {
		return nil, nil
	}
	return &rec, nil
}

// reader reads attributes of an item, or of a map within the item, and keeps the first error of all readers of the item.
type reader struct {
	item item
	err  *error
}

func (r reader) project() Project {
	p := Project{
		ID:     r.text("pk"),
		Name:   r.text("name"),
		Paused: r.boolean("paused"),
		Limit: RateLimit{
			Requests: int(r.number("limit_requests")),
			Window:   time.Duration(r.number("limit_seconds")) * time.Second,
		},
		Trial:   r.boolean("trial"),
		Created: r.instant("created"),
		version: r.number("version"),
	}
	if r.item["shards"] != nil {
		p.Shards = Shards{Count: int(r.number("shards")), Before: int(r.number("shards_before")), Since: r.instant("shards_since")}
	}
	p.Limits = r.limits()
	if r.item["recipient_key"] != nil || len(p.Limits.Recipients) > 0 {
		p.recipientKey = member[types.AttributeValueMemberB](r, "recipient_key").Value
	}
	for _, d := range r.list("trial_destinations") {
		p.TrialDestinations = append(p.TrialDestinations, reader{item{"destination": d}, r.err}.text("destination"))
	}
	return p
}

func (r reader) limits() (l Limits) {
	for name, into := range map[string]*int64{"daily_credits": &l.DailyCredits, "daily_units": &l.DailyUnits} {
		if r.item[name] != nil {
			*into = r.number(name)
		}
	}
	if r.item["recipient_limits"] != nil {
		l.Recipients = entries(r, "recipient_limits", func(one reader) RecipientLimit {
			return RecipientLimit{int(one.number("messages")), time.Duration(one.number("seconds")) * time.Second}
		})
	}
	return l
}

// entries returns the values of a list of maps. An item of another type is an error, and ends the list.
func entries[T any](r reader, name string, read func(reader) T) (values []T) {
	for _, v := range r.list(name) {
		m, ok := v.(*types.AttributeValueMemberM)
		if !ok {
			r.fail(fmt.Errorf("attribute %s holds %T", name, v))
			break
		}
		values = append(values, read(reader{m.Value, r.err}))
	}
	return values
}

func (r reader) credential() Credential {
	return Credential{
		ClientID:    r.text("client_id"),
		Environment: Environment(r.text("environment")),
		Active:      r.boolean("active"),
		Secrets: entries(r, "secrets", func(one reader) SecretDigest {
			return SecretDigest{Digest: one.digest("digest"), Created: one.instant("created")}
		}),
	}
}

func (r reader) integration() Integration {
	i := Integration{
		Kind:        Kind(r.text("kind")),
		Environment: Environment(r.text("environment")),
		Vendor:      r.text("vendor"),
		Mode:        Mode(r.text("mode")),
		Active:      r.boolean("active"),
		Priority:    int(r.number("priority")),
		Updated:     r.instant("updated"),
	}
	i.ID = IntegrationID(i.Environment, i.Kind, i.Vendor)
	one := reader{member[types.AttributeValueMemberM](r, "settings").Value, r.err}
	i.Settings = make(map[string]string, len(one.item))
	for name := range one.item {
		i.Settings[name] = one.text(name)
	}
	return i
}

func (r reader) fail(err error) {
	if *r.err == nil {
		*r.err = err
	}
}

func (r reader) wrong(name string) { r.fail(fmt.Errorf("attribute %s is %T", name, r.item[name])) }

// member returns the attribute in the SDK's type for it. For another type member notes an error and returns a zero value.
func member[M any](r reader, name string) *M {
	if m, ok := any(r.item[name]).(*M); ok {
		return m
	}
	r.wrong(name)
	return new(M)
}

func (r reader) text(name string) string { return member[types.AttributeValueMemberS](r, name).Value }
func (r reader) boolean(name string) bool {
	return member[types.AttributeValueMemberBOOL](r, name).Value
}

func (r reader) list(name string) []types.AttributeValue {
	return member[types.AttributeValueMemberL](r, name).Value
}

func (r reader) number(name string) int64 {
	n, err := strconv.ParseInt(member[types.AttributeValueMemberN](r, name).Value, 10, 64)
	r.fail(err)
	return n
}

func (r reader) instant(name string) time.Time {
	t, err := time.Parse(time.RFC3339, r.text(name))
	r.fail(err)
	return t
}

func (r reader) digest(name string) (digest [32]byte) {
	value := member[types.AttributeValueMemberB](r, name).Value
	if len(value) != len(digest) {
		r.wrong(name)
		return digest
	}
	return [32]byte(value)
}
