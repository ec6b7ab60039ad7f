package admin

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/dynamo"
	"svcapi/shared/project"
)

type item = dynamo.Item

func projectItem(p *project.Project) item {
	it := encode(p.Fields(), p.ID, project.SortProject)
	it["version"] = dynamo.Number(p.Version)
	return it
}

func credentialItem(projectID string, c *project.Credential) item {
	return encode(c.Fields(), projectID, project.SortCredential+c.ClientID)
}

func integrationItem(projectID string, i *project.Integration) item {
	return encode(i.Fields(), projectID,
		project.SortIntegration+string(i.Environment)+"#"+string(i.Kind)+"#"+i.Vendor)
}

// format returns the options of the JSON objects, which project.Decode reads. A duration is a number of seconds.
var format = sync.OnceValue(func() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true),
		json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) {
			return strconv.AppendInt(nil, int64(d/time.Second), 10), nil
		})))
})

func encode(f project.Fields, pk, sk string) item {
	text, err := json.Marshal(f, format())
	if err != nil {
		panic(fmt.Errorf("JSON of a project's item: %w", err)) // each field has a JSON form
	}
	return item{"pk": dynamo.Text(pk), "sk": dynamo.Text(sk), "v": dynamo.Text(string(text))}
}
