package admin

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
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

// NewID returns a project ID of 12 characters, 60 random bits.
func NewID() string { return randomText(12) }

// randomText returns up to 26 letters and digits of base32.
func randomText(length int) string { return strings.ToLower(rand.Text()[:length]) }

func newClientID(projectID string) string {
	return "svc_" + projectID + "_" + randomText(project.ClientIDTail)
}

// newSecret returns a client secret with 256 random bits.
func newSecret() string {
	b := make([]byte, 32)
	rand.Read(b) // documented never to fail
	return "svcs_" + base64.RawURLEncoding.EncodeToString(b)
}
