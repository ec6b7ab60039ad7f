package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/project"
	"svcapi/shared/ratelimit"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/test/must"
)

// referencePattern matches the member of a reference, which is random.
var referencePattern = regexp.MustCompile(`,"reference":"[\w-]{50,200}"`)

// of returns the outcome of a message after a call to vendor a.
func of(class upstream.Class) outcome {
	return outcome{vendor: "a", called: true, err: fault(class)}
}

// notCalled returns the outcome of a message without a call to a vendor.
func notCalled() outcome { return outcome{vendor: "a", err: fault(upstream.NotSent)} }

// delivered returns recipients with these outcomes.
func delivered(outcomes []outcome) []recipient {
	recipients := make([]recipient, len(outcomes))
	for i, o := range outcomes {
		recipients[i].outcome = o
	}
	return recipients
}

func acceptedBy(vendor, id string) outcome {
	return outcome{receipt: vendors.Receipt{Status: "queued", ID: id}, vendor: vendor, called: true}
}

// docs/decisions/sms.md#vendor-outcomes: without an accepted message the client gets the error of the first uncertain
// recipient, else of the first. The outcome is stored where a byte of any message may have reached a vendor.
// TestDeliver has the errors of single messages.
func TestFailure(t *testing.T) {
	const notSent, noResponse, unusable, rejected, refused = upstream.NotSent, upstream.NoResponse, upstream.Unusable,
		upstream.Rejected, upstream.CredentialsRefused
	at := func(vendor string, o outcome) outcome {
		o.vendor = vendor
		return o
	}
	for _, c := range []struct {
		name     string
		outcomes []outcome
		want     string
	}{
		{"one of them accepted", []outcome{of(rejected), of(noResponse), acceptedBy("a", "1"), of(notSent)}, ""},
		{"nothing called", []outcome{notCalled(), notCalled()}, "503 not_sent a"},
		{"the first, whatever comes after", []outcome{of(notSent), at("b", of(rejected)), at("c", of(refused))},
			"503 not_sent a reached"},
		{"the first rejected", []outcome{of(rejected), at("b", of(notSent))}, "502 rejected a reached"},
		{"refused, and the others not asked about", []outcome{of(refused), notCalled(), notCalled()},
			"502 credentials_refused a reached"},
		{"refused, and the others not sent by the next", []outcome{of(refused), at("b", of(notSent))},
			"502 credentials_refused a reached"},
		{"the first uncertain", []outcome{of(rejected), of(notSent), at("b", of(noResponse)), at("c", of(unusable))},
			"503 no_response b reached uncertain"},
		{"the first uncertain, the other way round", []outcome{at("c", of(unusable)), at("b", of(noResponse))},
			"502 unusable_response c reached uncertain"},
		{"uncertain at last", []outcome{of(notSent), of(refused), at("b", of(unusable))},
			"502 unusable_response b reached uncertain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := described(failure(delivered(c.outcomes))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A recipient without an outcome is not charged: the pipeline charges for a result and for an uncertain error alone.
func TestUndecided(t *testing.T) {
	r := bulk(single, 1)
	newFixture(one(accepts)).deliver(t.Context(), nil, r) // without accounts the delivery decides nothing
	for name, err := range map[string]error{
		"no delivery": failure(r.recipients), "beside an accepted one": failure(delivered([]outcome{acceptedBy("a", "1"),
			{}})),
	} {
		var e *request.Error
		if !isError(err, request.ErrInternal) || !errors.Is(err, errUndecided) || !errors.As(err, &e) || e.Uncertain ||
			e.Reached {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if n := acceptedUnits(bulk(bulkSame, 2).recipients); n != 0 {
		t.Errorf("%d units of undecided recipients are accepted", n)
	}
}

// The response to a bulk has every recipient's outcome, in the request's order (docs/decisions/sms.md#partial-failure).
func TestBulkAcceptance(t *testing.T) {
	for _, c := range []struct {
		name     string
		outcomes []outcome
		status   string
		id       string
		vendor   string
		statuses string
	}{
		{"one call", []outcome{acceptedBy("a", "1"), acceptedBy("a", "1"), acceptedBy("a", "1")}, "accepted", "1", "a",
			"accepted accepted accepted"},
		{"without IDs", []outcome{acceptedBy("a", ""), acceptedBy("a", ""), acceptedBy("a", "")}, "accepted", "", "a",
			"accepted accepted accepted"},
		{"a call each", []outcome{acceptedBy("a", "1"), acceptedBy("a", "2"), acceptedBy("a", "3")}, "accepted", "", "a",
			"accepted accepted accepted"},
		{"two vendors", []outcome{acceptedBy("b", "7"), acceptedBy("b", "7"), acceptedBy("a", "1")}, "accepted", "", "b",
			"accepted accepted accepted"},
		{"a part", []outcome{of(upstream.Rejected), acceptedBy("b", "7"), of(upstream.NoResponse)}, "partial", "", "b",
			"rejected accepted uncertain"},
		{"a part, the first accepted", []outcome{acceptedBy("a", "1"), of(upstream.CredentialsRefused), notCalled()},
			"partial", "", "a", "accepted rejected not_attempted"},
		{"a part without IDs", []outcome{acceptedBy("a", ""), of(upstream.Unusable), of(upstream.NotSent)}, "partial", "",
			"a", "accepted uncertain not_attempted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sendRequest{method: bulkDifferent}
			r.add("0771234567", "m")
			r.add("+94771234568", strings.Repeat("x", 154))
			r.add("0771234567", strings.Repeat("x", 307))
			for i, o := range c.outcomes {
				r.recipients[i].outcome = o
				r.recipients[i].reference = "r"
			}
			got := bulkAcceptance(r.recipients)
			if got.Status != c.status || got.ID != c.id || got.Vendor != c.vendor || len(got.Results) != len(c.outcomes) {
				t.Fatalf("%+v", got)
			}
			var statuses []string
			units := 0
			for i, result := range got.Results {
				statuses = append(statuses, string(result.Status))
				if want := (bulkResult{r.recipients[i].given, result.Status, c.outcomes[i].receipt.ID, c.outcomes[i].vendor, i + 1,
					"", "r"}); result != want {
					t.Errorf("result %d is %+v, want %+v", i, result, want)
				}
				if result.Status == accepted {
					units += i + 1
				}
			}
			if got := strings.Join(statuses, " "); got != c.statuses {
				t.Errorf("%s, want %s", got, c.statuses)
			}
			counts := map[string]int{}
			for _, s := range statuses {
				counts[s]++
			}
			for _, result := range got.withoutReferences().Results {
				if result.Reference != "" || got.Results[0].Reference != "r" {
					t.Errorf("%+v, reduced to %+v", got.Results[0], result)
				}
			}
			want := &bulkCounts{counts["accepted"], counts["rejected"], counts["uncertain"], counts["not_attempted"], 0}
			if c.status == "accepted" {
				want = nil // the response to a complete acceptance has no counts
			}
			if !reflect.DeepEqual(got.Counts, want) {
				t.Errorf("counts %+v, want %+v", got.Counts, want)
			}
			if got := acceptedUnits(r.recipients); got != units {
				t.Errorf("%d units of the accepted, want %d", got, units)
			}
		})
	}
}

// caller returns a call of a project with one integration for each vendor.
func (b *fixture) caller(mode project.Mode, settings map[string]string) *request.Call {
	b.client = upstream.New(upstream.Config{TimeoutSeconds: 10})
	call := &request.Call{Project: &project.Project{ID: "p"}, Mode: mode}
	for _, p := range b.vendors {
		call.Integrations = append(call.Integrations,
			project.Integration{ID: p.name, Kind: project.SMS, Vendor: p.name, Mode: mode, Settings: settings})
	}
	return call
}

// run prepares a send and runs it.
func (b *fixture) run(ctx context.Context, call *request.Call, r sendRequest) (*request.Result, error) {
	job, err := b.prepareSend(ctx, call, r)
	if err != nil {
		return nil, err
	}
	return job.Run(ctx)
}

// A send from the integrations to the response and the log entry.
func TestSend(t *testing.T) {
	for _, c := range []struct {
		name     string
		chain    chain
		method   string
		messages int
		data     string // a part of the response's data
		log      string
		cause    string // part of it; empty: none
		fails    string
	}{
		{"one", chain{one(down), one(accepts)}, single, 1,
			`{"send_method":"single","message_count":1,"credits_charged":0,"provider_response":{"status":"queued","id":"b1",` +
				`"vendor":"b"}}`, "units=1 accepted=1", "", ""},
		{"one, after a refused account", chain{one(noFunds), one(down), one(accepts)},
			single, 1, `"vendor":"c"`, "units=1 accepted=1", "with account_refused", ""},
		{"one rejected", chain{one(rejects)}, single, 1, "", "", "", "502 rejected a reached"},
		{"all", chain{many(accepts)}, bulkSame, 2,
			`"message_count":2,"credits_charged":0,"provider_response":{"status":"accepted","id":"a1","vendor":"a",` +
				`"results":[{"to":"+94770000000","status":"accepted","id":"a1","vendor":"a","units":1},`,
			"units=2 accepted=2", "", ""},
		{"through two accounts", chain{paced(inTurn(1, rejects, down)), many(accepts)}, bulkSame,
			100,
			`"message_count":99,"credits_charged":0,"provider_response":{"status":"partial","id":"","vendor":"b",` +
				`"counts":{"accepted":99,"rejected":1,"uncertain":0,"not_attempted":0},"results":[{"to":"+94770000000",` +
				`"status":"rejected","id":"","vendor":"a","units":1},{"to":"+94770000001","status":"accepted","id":"b1",` +
				`"vendor":"b","units":1},`,
			"units=99 accepted=99 rejected=1", "with rejected", ""},
		{"a part uncertain", chain{one(inTurn(1, rejects, inTurn(1, panics, accepts)))},
			bulkDifferent, 20,
			`"send_method":"bulk_different","message_count":18,`, "units=18 accepted=18 rejected=1 uncertain=1", "panic: ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(c.chain...)
				result, err := b.run(t.Context(), b.caller(project.BYOK, nil), bulk(c.method, c.messages))
				if got := described(err); got != c.fails {
					t.Fatalf("the failure is %q, want %q", got, c.fails)
				}
				if err != nil {
					return
				}
				data, err := json.Marshal(result.Data)
				data = referencePattern.ReplaceAll(data, nil)
				if err != nil || !strings.Contains(string(data), c.data) {
					t.Errorf("%s, %v; want %s", data, err, c.data)
				}
				var attributes []string
				for _, a := range result.Attributes {
					attributes = append(attributes, a.String())
				}
				if got := strings.Join(attributes, " "); got != c.log {
					t.Errorf("the log has %s, want %s", got, c.log)
				}
				if (result.Cause != nil) != (c.cause != "") ||
					result.Cause != nil && !strings.Contains(result.Cause.Error(), c.cause) {
					t.Errorf("the cause is %v, want %q", result.Cause, c.cause)
				}
			})
		})
	}
}

// docs/decisions/requests.md#recipient-limit: no vendor gets a message to a recipient whose limit is reached, the
// response names the reason, and the pipeline learns which messages no vendor can have sent.
func TestRecipientLimit(t *testing.T) {
	for _, c := range []struct {
		name    string
		vendor  *fakeVendor
		refused []bool
		data    string
		log     string
		fails   string
		unsent  []bool
		calls   int
	}{
		{"none", one(accepts), []bool{false, false}, `"status":"accepted"`, "units=2 accepted=2", "",
			[]bool{false, false}, 2},
		{"the first", one(accepts), []bool{true, false},
			`"results":[{"to":"+94770000000","status":"not_attempted","id":"","vendor":"","units":1,` +
				`"reason":"recipient_limit"},{"to":"+94770000001","status":"accepted","id":"a1","vendor":"a","units":1}]`,
			"units=1 accepted=1 not_attempted=1 recipient_limit=1", "", []bool{true, false}, 1},
		{"one, and the other is rejected", one(rejects), []bool{true, false}, "", "",
			"502 rejected a reached", []bool{true, true}, 1},
		{"one, and the other is uncertain", one(silent), []bool{false, true}, "", "",
			"503 no_response a reached uncertain", []bool{false, true}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(c.vendor)
				counts := &slowCounter{errs: map[int]error{}, unsent: make([]bool, 2), refuse: func(i int) error {
					if c.refused[i] {
						return &ratelimit.RecipientRefusal{}
					}
					return nil
				}}
				r := bulk(bulkSame, 2)
				r.messages = counts
				result, err := b.group.run(t.Context(), b.accounts, r, 0)
				if got := described(err); got != c.fails || b.vendors[0].calls != c.calls {
					t.Fatalf("%q after %d calls, want %q after %d", got, b.vendors[0].calls, c.fails, c.calls)
				}
				if !slices.Equal(counts.unsent, c.unsent) {
					t.Errorf("unsent are %v, want %v", counts.unsent, c.unsent)
				}
				if err != nil {
					return
				}
				data, err := json.Marshal(result.Data)
				data = referencePattern.ReplaceAll(data, nil)
				if err != nil || !strings.Contains(string(data), c.data) || result.Cause != nil {
					t.Errorf("%s, %v, %v; want %s", data, err, result.Cause, c.data)
				}
				if log := fmt.Sprint(result.Attributes); log != "["+c.log+"]" {
					t.Errorf("the log has %s, want %s", log, c.log)
				}
			})
		})
	}
}

// Each call of a request has a key of its own, which a repetition after a refusal for pace keeps. The key has the
// request ID where no credits are reserved (docs/decisions/sms.md#send-keys).
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(&fakeVendor{does: inTurn(2, isTooFast, accepts), batch: 100, atOnce: 1})
		call := b.caller(project.BYOK, nil)
		call.RequestID, call.Environment = "r1", project.Production
		_, err := b.run(t.Context(), call, bulk(bulkSame, 150))
		const prefix = "p/production/r1"
		if want := []string{prefix + "/0", prefix + "/0", prefix + "/0", prefix + "/100"}; err != nil ||
			!slices.Equal(b.vendors[0].keys, want) {
			t.Errorf("%v, %v; want %v", b.vendors[0].keys, err, want)
		}
	})
}

// openapi.yaml#SmsBulkCounts: removed recipients are not accepted or charged
// (docs/decisions/sms.md#removed-recipients).
func TestRemoved(t *testing.T) {
	r := bulk(bulkSame, 5)
	o := acceptedBy("a", "1")
	o.receipt.Removed, o.reference = vendors.Removed{Duplicates: 1, Blocked: 1}, "r1"
	record([]*recipient{&r.recipients[0], &r.recipients[1], &r.recipients[2]}, o)
	record([]*recipient{&r.recipients[3]}, acceptedBy("a", "2"))
	record([]*recipient{&r.recipients[4]}, of(upstream.Rejected))
	response := bulkAcceptance(r.recipients)
	data, err := json.Marshal(response)
	want := `"counts":{"accepted":2,"rejected":1,"uncertain":0,"not_attempted":0,"removed":2},"batches":[{"id":"1",` +
		`"vendor":"a","reference":"r1","recipients":3,"duplicates_removed":1,"invalid_numbers":0,` +
		`"mask_blocked_numbers":1}],"results":[{"to":"+94770000000","status":"accepted","id":"1","vendor":"a","units":1,` +
		`"reference":"r1"},`
	if err != nil || !strings.Contains(string(data), want) || response.Status != "partial" ||
		acceptedUnits(r.recipients) != 2 {
		t.Errorf("%s, %d units, %v", data, acceptedUnits(r.recipients), err)
	}
	if log := fmt.Sprint(summary(2, r.recipients)); log != "[units=2 accepted=2 rejected=1 removed=2]" {
		t.Error(log)
	}
}

// Refusals come before the first send, bulk and trial before the length (docs/decisions/sms.md#sms-refusals).
func TestPrepareSend(t *testing.T) {
	trial := &project.Project{ID: "p", Trial: true, TrialDestinations: []string{"+94770000000"}}
	long := sendRequest{method: bulkDifferent}
	long.add("0770000000", "short")
	long.add("0770000001", strings.Repeat("é€", 154))
	errTooLong := httpError(422, request.ReasonMessageTooLong,
		"The message of msg_list.1 has 462 characters of at most 459, which are 3 SMS units of 153 characters (GSM alphabet).")
	errUnicode := httpError(422, request.ReasonMessageTooLong,
		"The message has 202 characters of at most 201, which are 3 SMS units of 67 characters (Unicode).")
	emoji := sendRequest{method: single}
	emoji.add("0770000000", strings.Repeat("😀", 101))
	for _, c := range []struct {
		name    string
		project *project.Project
		mode    project.Mode
		request sendRequest
		want    error
	}{
		{"one", nil, project.Managed, bulk(single, 1), nil},
		{"bulk", nil, project.BYOK, bulk(bulkSame, 2), nil},
		{"bulk on Managed", nil, project.Managed, bulk(bulkSame, 2), errBulk},
		{"list on Managed", nil, project.Managed, bulk(bulkDifferent, 2), errBulk},
		{"allowed on trial", trial, project.BYOK, bulk(bulkSame, 1), nil},
		{"not all allowed on trial", trial, project.BYOK, bulk(bulkSame, 2), errTrial},
		{"too long", nil, project.BYOK, long, errTooLong},
		{"too long with Unicode", nil, project.BYOK, emoji, errUnicode},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFixture(one(accepts))
			call := b.caller(c.mode, nil)
			if c.project != nil {
				call.Project = c.project
			}
			job, err := b.prepareSend(t.Context(), call, c.request)
			if want, ok := errors.AsType[*request.Error](c.want); ok != isError(err, want) || (err == nil) != (job != nil) ||
				job != nil && !job.Irrevocable || b.vendors[0].calls != 0 {
				t.Errorf("%v with %d calls, want %v", err, b.vendors[0].calls, c.want)
			}
		})
	}
	b := newFixture(one(accepts))
	call := b.caller(project.BYOK, nil)
	call.Integrations[0].Vendor = "unknown"
	incomplete := httpError(422, request.ReasonIntegrationIncomplete, call.NoIntegration(nil).Message)
	if _, err := b.prepareSend(t.Context(), call, bulk(single, 1)); !isError(err, incomplete) ||
		!errors.Is(err, upstream.ErrIncomplete) {
		t.Errorf("an unknown vendor: %v", err)
	}
	if _, err := b.prepareBalance(t.Context(), call, struct{}{}); !isError(err, incomplete) {
		t.Errorf("the balance of an unknown vendor: %v", err)
	}
}

// isError reports whether the client gets the wanted response for an error.
func isError(err error, want *request.Error) bool {
	var e *request.Error
	return want != nil && errors.As(err, &e) && e.Status == want.Status && e.Code == want.Code && e.Message == want.Message
}

// fakeReporter is a vendor that returns balances and estimates.
type fakeReporter struct{ fakeAdapter }

func (a fakeReporter) Balance(ctx context.Context) (string, error) {
	_, err := a.call(ctx, nil)
	return "12.50 LKR", err
}

func (a fakeReporter) CheckCost(ctx context.Context, to []string, text string) (vendors.Campaign, error) {
	_, err := a.call(ctx, nil)
	return vendors.Campaign{Cost: "1.00", Numbers: fmt.Sprint(len(to)), Type: text}, err
}

// withBalances makes the vendors return balances and estimates.
func (b *fixture) withBalances() *fixture {
	for i, p := range b.vendors {
		b.table[i].New = func(*upstream.Client,
			upstream.Account) vendors.Adapter {
			return fakeReporter{fakeAdapter{p}}
		}
	}
	return b
}

// docs/decisions/sms.md#sms-balance: the balance of the first account, without fail-over.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		name string
		does behaviour
		want *request.Error // nil: a balance
	}{
		{"accepts", accepts, nil},
		{"rejects", rejects,
			httpError(422, request.ReasonBalanceUnavailable, "The SMS provider returned no balance for these credentials.")},
		{"refuses", refuses,
			httpError(422, request.ReasonVendorCredentialsRefused, "The SMS provider refused the integration's credentials.")},
		{"down", down, httpError(503, request.ReasonVendorUnreachable, "The SMS provider could not be reached.")},
		{"hangs", hangs, httpError(503, request.ReasonVendorUnreachable, "The SMS provider did not respond.")},
		{"unusable", unusable, request.ErrInternal},
		{"nonsense", noClass, request.ErrInternal},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(one(c.does), one(accepts)).withBalances()
				job, err := b.prepareBalance(t.Context(), b.caller(project.BYOK, nil), struct{}{})
				if err != nil || job.Credits.Amount() != 0 || job.Irrevocable {
					t.Fatalf("%+v, %v", job, err)
				}
				result, err := job.Run(t.Context())
				if b.vendors[0].calls != 1 || b.vendors[1].calls != 0 {
					t.Errorf("%d and %d calls", b.vendors[0].calls, b.vendors[1].calls)
				}
				if c.want != nil {
					var e *request.Error
					if !isError(err, c.want) || !errors.As(err, &e) || e.Vendor != "a" || e.Uncertain || e.Reached {
						t.Errorf("%v, want %v", err, c.want)
					}
					return
				}
				if err != nil || result.Vendor != "a" ||
					!reflect.DeepEqual(result.Data, balanceResult{"sms_provider_direct", "12.50 LKR", map[string]string{"balance": "12.50 LKR"}}) {
					t.Errorf("%+v, %v", result, err)
				}
			})
		})
	}
	b := newFixture(one(accepts))
	job, err := b.prepareBalance(t.Context(), b.caller(project.BYOK, nil), struct{}{})
	must.Succeed(t, err)
	if _, err := job.Run(t.Context()); !isError(err, errNoBalance) || b.vendors[0].calls != 0 {
		t.Errorf("a vendor without balances: %v", err)
	}
}

// A cost check is computed, or calls the vendor where the integration permits that, and sends nothing
// (docs/decisions/sms.md#cost-check).
func TestCheckCost(t *testing.T) {
	native := map[string]string{vendors.UnitPrice: "0.645", vendors.NativeCheckCost: "true", "sender_id": "Me"}
	priced := map[string]string{vendors.UnitPrice: "0.645", vendors.NativeCheckCost: "false", "sender_id": "Me"}
	check := bulk(bulkSame, 0)
	check.checkCost = true
	check.add("0771234567", strings.Repeat("අ", 68))
	check.add("0771234568", strings.Repeat("අ", 68))
	computed := vendors.Campaign{Method: bulkSame, Type: "sms", Sender: "Me", Cost: "2.580", Numbers: "2",
		Parts: []vendors.CampaignMessage{
			{Message: check.recipients[0].text, Unicode: "1", Size: "2", PerSMS: "0.645", Cost: "1.290"},
		}}
	whole := bulk(bulkSame, 3)
	whole.checkCost = true
	for _, c := range []struct {
		name     string
		settings map[string]string
		telling  bool
		does     behaviour
		request  sendRequest
		calls    int
		want     any // vendors.Campaign or *request.Error
	}{
		{"computed", priced, false, panics, check, 0, computed},
		{"computed, as the vendor has no estimate", native, false, panics, check, 0, computed},
		{"computed, as the integration wants", priced, true, panics, check, 0, computed},
		{"of a whole price", map[string]string{vendors.UnitPrice: "2"}, false, panics, whole, 0, vendors.Campaign{
			Method: bulkSame, Type: "sms", Cost: "6.00", Numbers: "3", Parts: []vendors.CampaignMessage{{Message: "m",
				Unicode: "0", Size: "1", PerSMS: "2.00", Cost: "2.00"}},
		}},
		{"without a price", nil, false, panics, check, 0, errNoUnitPrice},
		{"with a price that is none", map[string]string{vendors.UnitPrice: "1,5"}, true, panics, check, 0, errNoUnitPrice},
		{"the vendor's", native, true, accepts, check, 1,
			vendors.Campaign{Cost: "1.00", Numbers: "2", Type: check.recipients[0].text}},
		{"the vendor rejects", native, true, rejects, check, 1, callErrors[upstream.Rejected]},
		{"the vendor refuses", native, true, refuses, check, 1, callErrors[upstream.CredentialsRefused]},
		{"the vendor hangs", native, true, hangs, check, 1, callErrors[upstream.NoResponse]},
		{"the vendor is down", native, true, down, check, 1, callErrors[upstream.NotSent]},
		{"an unusable response of the vendor", native, true, noClass, check, 1, callErrors[upstream.Unusable]},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(one(c.does), one(panics))
				if c.telling {
					b.withBalances()
				}
				began := time.Now()
				result, err := b.run(t.Context(), b.caller(project.BYOK, c.settings), c.request)
				if b.vendors[0].calls != c.calls || b.vendors[1].calls != 0 || time.Since(began) > callTimeout {
					t.Errorf("%d and %d calls in %v", b.vendors[0].calls, b.vendors[1].calls, time.Since(began))
				}
				if want, ok := c.want.(*request.Error); ok {
					var e *request.Error
					if !isError(err, want) || !errors.As(err, &e) || e.Uncertain || e.Reached || c.calls > 0 && e.Vendor != "a" {
						t.Errorf("%v, want %v", err, want)
					}
					return
				}
				must.Succeed(t, err)
				want := sendResult{Method: bulkSame, Units: len(c.request.recipients) * c.request.recipients[0].Units,
					Provider: costResponse{"success", c.want.(vendors.Campaign)}}
				if !reflect.DeepEqual(result.Data, want) || result.Vendor != "a" {
					t.Errorf("%+v of %s, want %+v", result.Data, result.Vendor, want)
				}
			})
		})
	}
}

// docs/decisions/sms.md#number-proposals: the E.164 form of a number in another form.
func TestProposeNumber(t *testing.T) {
	const e164 = "+94771234567"
	for given, want := range map[string]string{
		"94771234567": e164, "771234567": e164, "077 123 4567": e164, "0094771234567": e164, "00 94 77 123 45 67": e164,
		"+94 77 123 4567": e164, "+94 (0)77-1234567": e164, "077.123.4567": e164, "077-123-4567": e164, " 0771234567": e164,
		"077\u00a0123\u00a04567": e164, "\u202a+94771234567\u202c": e164, "077\u2011123\u20114567": e164,
		"": "", "0671234567": "", "07712345678": "", "077123456": "", "+1771234567": "", "+94671234567": "",
		"077 123 456x":  "",
		"++94771234567": "", "94 94 771234567": "", "+0771234567": "",
	} {
		if got := proposeNumber(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
		if want != "" && !number.Pattern().MatchString(want) {
			t.Errorf("%q is no number of the contract", want)
		}
		if text := oneNumber().Explain(given); (text == severalNumbers) || (text == "") != (want == "") {
			t.Errorf("%q in a single send: %q", given, text)
		}
	}
	for _, given := range []string{
		"0771234567 0777654321", "0771234567\t0777654321", "077 123 4567 and +94 77 765 4321", "07712345670777654321",
		"0771234567, 0777654321", "0771234567;", "94771234567\n0112345678 94779876543", "0771234567|x", "771234567/8",
	} {
		if text := oneNumber().Explain(given); (text == severalNumbers) != (given != "0771234567;") {
			t.Errorf("%q in a single send: %q", given, text)
		}
	}
}
