// The function listsync fetches the published lists of disposable mail domains on a schedule, and stores their
// difference to the compiled table.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"svcapi/functions/security/disposable"
	"svcapi/functions/security/disposable/lists"
	"svcapi/shared/burner"
	"svcapi/shared/cache"
	"svcapi/shared/dynamo"
	"svcapi/shared/settings"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
)

// config is the configuration that the function reads from the environment.
type config struct {
	ProjectsTable string `env:"PROJECTS_TABLE,required,notEmpty"`
	Endpoint      string `env:"LISTS_ENDPOINT_URL"` // of an emulator of the sources; empty: their own addresses
	Upstream      upstream.Config
	Log           telemetry.Config
}

// Validate returns the problems of the configuration.
func (c config) Validate() error {
	if c.Endpoint != "" && !c.Upstream.Local {
		return errors.New("LISTS_ENDPOINT_URL is for the local stack only")
	}
	return c.Upstream.Validate()
}

func main() {
	cfg, err := settings.Read[config]()
	if err != nil {
		telemetry.Exit(err)
	}
	s := &syncer{
		store:    burner.NewStore(dynamo.NewClient(dynamo.FromEnvironment()), cfg.ProjectsTable),
		client:   upstream.New(cfg.Upstream),
		endpoint: cfg.Endpoint,
		now:      cache.Clock{}.Now,
		log:      telemetry.New(os.Stdout, cfg.Log),
	}
	lambda.Start(s.handle)
}

// The bounds of docs/decisions/look-ups.md#fresh-lists.
const (
	maxBytes   = 8 << 20 // of one file
	minDomains = 100     // of one file
	maxDomains = 500_000
	maxChange  = 20        // percent of the list in use
	maxPacked  = 380 << 10 // an item of DynamoDB has at most 400 KB
)

// syncer runs on a schedule.
type syncer struct {
	store    *burner.Store
	client   *upstream.Client
	endpoint string
	now      func() time.Time
	log      *telemetry.Logger
}

// handle fetches the lists once and logs one line. A source without a usable list is no error of the function: the list
// in use stays, and an alarm watches the age of that list, which only a run that has failed counts.
func (s *syncer) handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	outcome, err := s.run(run)
	event := telemetry.Event{
		Level: slog.LevelInfo, Message: "lists synced",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "listsync"}},
		Metrics: []telemetry.Metric{{Name: "ListsAge", Unit: telemetry.Seconds,
			Value: outcome.Age(outcome.Tried).Seconds(), SkipZero: true}},
		Attributes: []slog.Attr{
			slog.Int("domains", outcome.Domains), slog.Int("added", outcome.Added), slog.Int("removed", outcome.Removed),
		},
	}
	if outcome.Failure != "" {
		event.Level, event.Attributes = slog.LevelWarn, append(event.Attributes, slog.String("failure", outcome.Failure))
	}
	if err != nil { // the age is not known
		event.Level, event.Message, event.Metrics = slog.LevelError, "lists not synced", nil
		event.Attributes = []slog.Attr{slog.String("error", err.Error())}
	}
	s.log.Emit(ctx, event)
	return err
}

// run fetches the lists and stores the outcome. The error is one of the table.
func (s *syncer) run(ctx context.Context) (burner.Outcome, error) {
	judged, err := s.store.List(ctx, burner.Stage)
	if err != nil {
		return burner.Outcome{}, err
	}
	now := s.now().UTC()
	next, failure := s.fetch(ctx, judged.Difference.Packed)
	if failure != nil {
		next = burner.Difference{Outcome: judged.Difference.Outcome}
		next.Failure = failure.Error()
	} else {
		next.Fetched, next.Since = now, judged.Difference.Since
	}
	if next.Tried = now; next.Since.IsZero() {
		next.Since = now
	}
	return next.Outcome, s.store.PutDifference(ctx, next)
}

// fetch returns the difference of the lists to the compiled table, or why it is not used. The packed difference is that
// in use.
func (s *syncer) fetch(ctx context.Context, packed []byte) (next burner.Difference, err error) {
	sources, err := lists.Sources()
	if err != nil {
		return next, err
	}
	var all []lists.List
	next.Sources = map[string]int{}
	for _, source := range sources {
		list := lists.List{Kind: source.Kind}
		for _, newest := range source.Newest {
			format, address, _ := strings.Cut(newest, ":")
			domains, err := s.get(ctx, format, address)
			if err != nil {
				return next, fmt.Errorf("%s: %w", address, err)
			}
			next.Sources[address] = len(domains)
			list.Domains = append(list.Domains, domains...)
		}
		all = append(all, list)
	}
	kept, counts := lists.Keep(all)
	if counts.Malformed > counts.Joined/100 {
		return next, fmt.Errorf("%d of %d texts are no domains", counts.Malformed, counts.Joined)
	}
	compiled := slices.Collect(disposable.Compiled().All)
	added, removed := compare(kept, compiled)
	addedBefore, removedBefore, _ := disposable.Unpack(packed) // one that cannot be read is replaced, as none
	before := len(compiled) + len(addedBefore) - len(removedBefore)
	if changed := unlike(added, addedBefore) + unlike(removed, removedBefore); changed > before*maxChange/100 {
		return next, fmt.Errorf("%d of %d domains would change, over %d %%", changed, before, maxChange)
	}
	if next.Packed = disposable.Pack(added, removed); len(next.Packed) > maxPacked {
		return next, fmt.Errorf("the difference has %d bytes, over %d: deploy a version with newer lists",
			len(next.Packed), maxPacked)
	}
	next.Domains, next.Added, next.Removed = len(kept), len(added), len(removed)
	return next, nil
}

// get fetches one file.
func (s *syncer) get(ctx context.Context, format, address string) ([]string, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" {
		return nil, errors.New("not an https address")
	}
	if s.endpoint != "" {
		address = s.endpoint + "/lists" + at.Path
	}
	response, err := s.client.Do(ctx, "lists", &upstream.Request{Method: http.MethodGet, URL: address, MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	if response.Status != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.Status)
	}
	domains, err := lists.Parse(format, response.Body)
	if err != nil {
		return nil, err
	}
	if n := len(domains); n < minDomains || n > maxDomains {
		return nil, fmt.Errorf("%d domains, not %d to %d", n, minDomains, maxDomains)
	}
	return domains, nil
}

// compare returns the sorted domains that are kept and not compiled, and those that are compiled and no longer listed.
func compare(kept, compiled []string) (added, removed []string) {
	listed := setOf(kept)
	removed = slices.DeleteFunc(without(compiled, kept), func(d string) bool { return lists.HasListedParent(d, listed) })
	slices.Sort(removed)
	return without(kept, compiled), removed
}

// unlike returns the number of domains that are in one of two lists only.
func unlike(a, b []string) int { return len(without(a, b)) + len(without(b, a)) }

// without returns the domains of a list that another list lacks.
func without(list, other []string) []string {
	in := setOf(other)
	return slices.DeleteFunc(slices.Clone(list), func(d string) bool { return in[d] })
}

func setOf(domains []string) map[string]bool {
	set := make(map[string]bool, len(domains))
	for _, d := range domains {
		set[d] = true
	}
	return set
}
