package project

import (
	"cmp"
	"crypto/sha256"
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

// fields maps the attributes of an item, or of a map within an item, to pointers to their values.
type fields map[string]any

// structure is a value with attributes of its own.
type structure interface{ fields() fields }

// projectFields returns the fields of a project that has a value, or that has an attribute in the item, which may be nil.
func projectFields(p *Project, it item) fields {
	f := fields{
		"pk": &p.ID, "name": &p.Name, "paused": &p.Paused, "created": &p.Created, "version": &p.version,
		"limit_requests": &p.Limit.Requests, "limit_seconds": &p.Limit.Window,
		"trial": &p.Trial, "trial_destinations": &p.TrialDestinations, "hash_key": &p.hashKey,
	}
	if !p.Closed.IsZero() || it["closed"] != nil {
		f["closed"] = &p.Closed
	}
	if len(p.Limits.Recipients) > 0 || it["recipient_limits"] != nil {
		f["recipient_limits"] = &p.Limits.Recipients
	}
	for name, most := range map[string]*int64{"daily_credits": &p.Limits.DailyCredits, "daily_units": &p.Limits.DailyUnits} {
		if *most != 0 || it[name] != nil {
			f[name] = most
		}
	}
	return f
}

func (r *RecipientLimit) fields() fields {
	return fields{"messages": &r.Messages, "seconds": &r.Window}
}

func (c *Credential) fields() fields {
	return fields{"client_id": &c.ClientID, "environment": (*string)(&c.Environment), "active": &c.Active, "secrets": &c.Secrets}
}

func (s *SecretDigest) fields() fields { return fields{"digest": &s.Digest, "created": &s.Created} }

func (i *Integration) fields() fields {
	return fields{
		"environment": (*string)(&i.Environment), "kind": (*string)(&i.Kind), "vendor": &i.Vendor, "mode": (*string)(&i.Mode),
		"active": &i.Active, "priority": &i.Priority, "settings": &i.Settings, "updated": &i.Updated,
	}
}

func projectItem(p *Project) item {
	return projectFields(p, nil).encode(item{"sk": dynamo.Text(sortProject)})
}

func credentialItem(projectID string, c *Credential) item {
	return c.fields().encode(item{"pk": dynamo.Text(projectID), "sk": dynamo.Text(sortCredential + c.ClientID)})
}

func integrationItem(projectID string, i *Integration) item {
	sort := sortIntegration + string(i.Environment) + "#" + string(i.Kind) + "#" + i.Vendor
	return i.fields().encode(item{"pk": dynamo.Text(projectID), "sk": dynamo.Text(sort)})
}

// decode returns the record that the items of a project's partition form, or nil where the project's own item is missing.
func decode(items []item) (*Record, error) {
	var rec Record
	found := false
	for _, it := range items {
		var sort string
		err := read(it["sk"], &sort)
		switch {
		case sort == sortProject:
			err, found = projectFields(&rec.Project, it).decode(it), true
		case strings.HasPrefix(sort, sortCredential):
			var c Credential
			err = c.fields().decode(it)
			rec.Credentials = append(rec.Credentials, c)
		case strings.HasPrefix(sort, sortIntegration):
			var i Integration
			err = i.fields().decode(it)
			i.ID = IntegrationID(i.Environment, i.Kind, i.Vendor)
			rec.Integrations = append(rec.Integrations, i)
		}
		if err != nil {
			return nil, fmt.Errorf("item %s of project %s: %w", sort, dynamo.TextOf(it["pk"]), err)
		}
	}
	if !found {
		return nil, nil
	}
	return &rec, nil
}

// encode adds the attributes of the fields to an item.
func (f fields) encode(it item) item {
	for name, pointer := range f {
		it[name] = attribute(pointer)
	}
	return it
}

// decode reads all fields from an item. A missing attribute is an error.
func (f fields) decode(it item) error {
	for name, pointer := range f {
		if err := read(it[name], pointer); err != nil {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return nil
}

// attribute returns the attribute with the value of a field. A duration is a number of seconds.
func attribute(pointer any) types.AttributeValue {
	switch p := pointer.(type) {
	case *string:
		return dynamo.Text(*p)
	case *time.Time:
		return dynamo.Text(p.UTC().Format(time.RFC3339))
	case *int:
		return dynamo.Number(int64(*p))
	case *int64:
		return dynamo.Number(*p)
	case *time.Duration:
		return dynamo.Number(int64(*p / time.Second))
	case *bool:
		return &types.AttributeValueMemberBOOL{Value: *p}
	case *[]byte:
		return dynamo.Bytes(*p)
	case *[sha256.Size]byte:
		return dynamo.Bytes(p[:])
	case *[]string:
		return listOf(*p)
	case *[]RecipientLimit:
		return listOf(*p)
	case *[]SecretDigest:
		return listOf(*p)
	case *map[string]string:
		texts := make(item, len(*p))
		for name, text := range *p {
			texts[name] = dynamo.Text(text)
		}
		return &types.AttributeValueMemberM{Value: texts}
	case structure:
		return &types.AttributeValueMemberM{Value: p.fields().encode(item{})}
	}
	panic(fmt.Sprintf("no attribute has the type %T", pointer))
}

func listOf[T any](values []T) types.AttributeValue {
	list := make([]types.AttributeValue, len(values))
	for i := range values {
		list[i] = attribute(&values[i])
	}
	return &types.AttributeValueMemberL{Value: list}
}

// read reads a field from the attribute that attribute returns for the field. Any other attribute is an error.
func read(from types.AttributeValue, pointer any) (err error) {
	ok := false
	switch v := from.(type) {
	case *types.AttributeValueMemberS:
		if ok = set(pointer, v.Value); !ok {
			var t time.Time
			t, err = time.Parse(time.RFC3339, v.Value)
			ok = set(pointer, t)
		}
	case *types.AttributeValueMemberN:
		var n int64
		n, err = strconv.ParseInt(v.Value, 10, 64)
		ok = set(pointer, n) || set(pointer, int(n)) || set(pointer, time.Duration(n)*time.Second)
	case *types.AttributeValueMemberBOOL:
		ok = set(pointer, v.Value)
	case *types.AttributeValueMemberB:
		ok = set(pointer, v.Value) || len(v.Value) == sha256.Size && set(pointer, [sha256.Size]byte(v.Value))
	case *types.AttributeValueMemberL:
		switch p := pointer.(type) {
		case *[]string:
			return readList(v.Value, p)
		case *[]RecipientLimit:
			return readList(v.Value, p)
		case *[]SecretDigest:
			return readList(v.Value, p)
		}
	case *types.AttributeValueMemberM:
		if p, ok := pointer.(structure); ok {
			return p.fields().decode(v.Value)
		}
		texts := make(map[string]string, len(v.Value))
		for name, value := range v.Value {
			var text string
			err = cmp.Or(err, read(value, &text))
			texts[name] = text
		}
		ok = set(pointer, texts)
	}
	if !ok {
		return fmt.Errorf("is %T", from)
	}
	return err
}

// set sets the value that a pointer points to, and reports whether the pointer has the type for the value.
func set[T any](pointer any, value T) bool {
	p, ok := pointer.(*T)
	if ok {
		*p = value
	}
	return ok
}

func readList[T any](list []types.AttributeValue, into *[]T) error {
	for _, v := range list {
		var one T
		if err := read(v, &one); err != nil {
			return err
		}
		*into = append(*into, one)
	}
	return nil
}
