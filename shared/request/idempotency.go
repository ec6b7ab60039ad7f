package request

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"svcapi/shared/dynamo"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
	maxKey         = 128
)

var (
	errOtherBody = &Error{Status: 422, Code: CodeHTTPError, Reason: ReasonIdempotencyKeyReused,
		Message: "The Idempotency-Key was used with another request body."}
	errRunning = &Error{Status: 409, Code: CodeHTTPError, Reason: ReasonIdempotencyInProgress,
		Message: "The first request with this Idempotency-Key is still at work."}
	// errNotKept is stored in place of an outcome that is too large (docs/decisions/extensions.md#idempotency-size).
	errNotKept = &Error{Status: 409, Code: CodeHTTPError, Reason: ReasonIdempotencyNotKept,
		Message: "The first request with this Idempotency-Key was carried out, but its response is too large to be repeated."}
	// errDied is stored for a dead request (docs/decisions/extensions.md#idempotency-dead-claims).
	errDied = &Error{Status: 503, Code: CodeHTTPError, Reason: ReasonOutcomeUncertain,
		Message: "The first request with this Idempotency-Key was cut off. The message may have been sent: do not retry " +
			"automatically."}
)

// idempotencyKey reads and validates the header (docs/decisions/extensions.md#idempotency-key).
func idempotencyKey(h http.Header, problems Problems) string {
	values := h.Values(keyHeader)
	if len(values) == 0 {
		return ""
	}
	key := values[0]
	invisible := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if len(values) != 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, invisible) {
		problems.Add(keyHeader, "must be 1 to 128 visible ASCII characters, once")
	}
	return key
}

// claim wins the request's key, or returns the outcome of the key's first request. If the request dies afterwards, its
// claim stays: only a request from which nothing reached a provider frees its claim.
func (s *Service) claim(ctx context.Context, state *requestState, key string) (*Result, error) {
	if key == "" {
		return nil, nil
	}
	until, _ := ctx.Deadline() // Lambda gives each request one
	won, outcome, err := s.keys.claim(ctx, state.record.ID, string(state.environment), key, state.body, until)
	state.claim = won
	if err != nil || won != nil {
		return nil, err
	}
	return replay(outcome)
}

// endClaim stores the outcome of a request that may have reached a provider, and frees the key of any other request
// (docs/decisions/extensions.md#idempotency-outcomes).
func (state *requestState) endClaim(ctx context.Context, result *Result, failed error) {
	if state.claim == nil {
		return
	}
	var e *Error
	if reached := failed == nil || errors.As(failed, &e) && e.Reached; !reached {
		if err := state.claim.free(ctx); err != nil {
			state.note("key_not_freed", err)
		}
		return
	}
	err := state.keep(ctx, result, e)
	if errors.Is(err, errOutcomeTooLarge) && result.Reduced != nil {
		err = state.keep(ctx, &Result{Data: result.Reduced(), Vendor: result.Vendor}, nil)
	}
	if errors.Is(err, errOutcomeTooLarge) {
		err = errors.Join(err, state.keep(ctx, nil, errNotKept))
	}
	if err != nil {
		state.note("outcome_not_kept", err)
		state.metric("OutcomesNotKept")
	}
}

func (state *requestState) keep(ctx context.Context, result *Result, failed *Error) error {
	outcome, err := encodeOutcome(result, failed)
	if err != nil {
		return err
	}
	return state.claim.keep(ctx, outcome)
}

// outcome is what a key keeps: a result, or an error.
type outcome struct {
	Vendor string         `json:"vendor,omitzero"`
	Data   jsontext.Value `json:"data,omitzero"`
	Error  *Error         `json:"error,omitzero"`
}

func encodeOutcome(result *Result, failed *Error) ([]byte, error) {
	if failed != nil {
		return encode(outcome{Error: failed})
	}
	data, err := encode(result.Data)
	if err != nil {
		return nil, err
	}
	return encode(outcome{Vendor: result.Vendor, Data: data})
}

// replay returns the result or the error of the first request from its stored outcome.
func replay(text []byte) (*Result, error) {
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, ErrInternal.WithCause(fmt.Errorf("kept outcome: %w", err))
	}
	if o.Error == nil {
		return &Result{Data: o.Data, Vendor: o.Vendor, replayed: true}, nil
	}
	o.Error.Header = http.Header{replayedHeader: {"true"}}
	return nil, o.Error
}

const (
	// keyLife is the life of a key. The expiry is part of every condition, because the table deletes late.
	keyLife = 24 * time.Hour
	// claimSlack is the time after its deadline in which a request may still write.
	claimSlack = 60 * time.Second
	// maxPacked is the largest compressed outcome that is stored, in bytes, below the 400 KB of a DynamoDB item. 10,000
	// recipients with the longest vendor IDs take 273 KB (docs/decisions/extensions.md#idempotency-size).
	maxPacked = 380_000
	// maxOutcome bounds an unpacked outcome, in bytes.
	maxOutcome = 32 << 20
)

var (
	// errOutcomeTooLarge reports that the outcome does not fit into an item.
	errOutcomeTooLarge = errors.New("the outcome is too large to be kept")

	errNotOwned = errors.New("idempotency: the key is another claim's, or has its outcome")
)

// keyStore stores Idempotency-Keys in the table of transient items: the first request with a key claims the key, later
// requests get the outcome of the first (docs/decisions/extensions.md#idempotency-key). Calls may be concurrent.
//
//	State    The item has                  A further request             The owner of the claim
//	free     no item, or it has expired    claims the key                -
//	claimed  o, h, dead; no n              409; after dead: keeps 503    keep: kept; free: freed
//	kept     o, h, d, n                    422 for another body, else d  keeps nothing more
//	freed    o, freed                      claims the key                DynamoDB rejects a late copy of its claim
//
// o is the claim's owner, h the body's digest, dead the time from which the request cannot be alive, d the outcome.
type keyStore struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// claim is a key that this request has won.
type claim struct {
	store *keyStore
	pk    string
	owner string // distinguishes this claim from all others of the key
	began int64  // in Unix microseconds, at least the time at which the key was freed before
}

// claim wins the key, or returns the outcome of the request that won the key before. This request ends at until. claim
// stores errDied for a dead earlier request (docs/decisions/extensions.md#idempotency-dead-claims).
func (s *keyStore) claim(ctx context.Context, projectID, env, key string, body []byte,
	until time.Time) (*claim, []byte, error) {
	now, digest := s.now(), sha256.Sum256(body)
	c := &claim{store: s, pk: "idem#" + projectID + "#" + env + "#" + key, owner: rand.Text(), began: now.UnixMicro()}
	timed, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	put := &dynamodb.PutItemInput{
		TableName: &s.table,
		Item: dynamo.Item{
			"pk": dynamo.Text(c.pk), "o": dynamo.Text(c.owner), "h": dynamo.Bytes(digest[:]),
			"dead": dynamo.Number(until.Add(claimSlack).UnixMilli()), "expires": dynamo.Number(now.Add(keyLife).Unix()),
		},
		ConditionExpression: new("attribute_not_exists(pk) OR expires <= :now OR freed <= :began AND o <> :o"),
		ExpressionAttributeValues: dynamo.Item{
			":now": dynamo.Number(now.Unix()), ":began": dynamo.Number(c.began), ":o": dynamo.Text(c.owner),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, ambiguous, err := dynamo.Write(timed, s.client.PutItem, put)
	stored, conflict := dynamo.ConditionFailed(err)
	// The key was freed a moment ago, or by an instance whose clock is ahead.
	if conflict && stored["freed"] != nil && dynamo.TextOf(stored["o"]) != c.owner {
		if c.began, err = dynamo.NumberOf(stored["freed"]); err != nil {
			return nil, nil, fmt.Errorf("idempotency: claim: %w", err)
		}
		put.ExpressionAttributeValues[":began"] = stored["freed"]
		_, ambiguous, err = dynamo.Write(timed, s.client.PutItem, put)
		stored, conflict = dynamo.ConditionFailed(err)
	}
	switch {
	case err == nil, conflict && dynamo.TextOf(stored["o"]) == c.owner: // an earlier attempt took effect
		return c, nil, nil
	case conflict && stored["freed"] != nil: // freed again meanwhile
		return nil, nil, errRunning
	case !conflict && ambiguous == 0:
		return nil, nil, fmt.Errorf("idempotency: claim: %w", err)
	case !conflict:
		// An attempt without a response may have taken effect: without free the key would stay claimed until it is dead.
		return nil, nil, errors.Join(fmt.Errorf("idempotency: claim: %w", err), c.free(ctx))
	}
	if h, _ := stored["h"].(*types.AttributeValueMemberB); h == nil || !bytes.Equal(h.Value, digest[:]) {
		return nil, nil, errOtherBody
	}
	outcome, err := s.outcome(ctx, c.pk, stored)
	return nil, outcome, err
}

// outcome returns the outcome of the request that the stored item belongs to.
func (s *keyStore) outcome(ctx context.Context, pk string, item dynamo.Item) ([]byte, error) {
	if item["n"] != nil {
		return dynamo.Unpack(dynamo.BytesOf(item["d"]), maxOutcome)
	}
	until, err := dynamo.NumberOf(item["dead"])
	if err != nil {
		return nil, fmt.Errorf("idempotency: read: %w", err)
	}
	if s.now().UnixMilli() < until {
		return nil, errRunning
	}
	died, _ := encodeOutcome(nil, errDied) // texts alone cannot fail
	dead := &claim{store: s, pk: pk, owner: dynamo.TextOf(item["o"])}
	switch stored, err := dead.write(ctx, died); {
	case errors.Is(err, errNotOwned) &&
		stored["n"] != nil: // the dead request ended after all, or another repeat was first
		return dynamo.Unpack(dynamo.BytesOf(stored["d"]), maxOutcome)
	case errors.Is(err, errNotOwned): // released or claimed again since
		return nil, errRunning
	default:
		return died, err
	}
}

// keep stores the outcome for the rest of the key's life, or returns errOutcomeTooLarge.
func (c *claim) keep(ctx context.Context, outcome []byte) error {
	stored, err := c.write(ctx, outcome)
	if errors.Is(err, errNotOwned) && dynamo.TextOf(stored["o"]) == c.owner { // an earlier attempt took effect
		return nil
	}
	return err
}

// write packs the outcome into the claim's item. For another claim's item errNotOwned comes with the stored item.
func (c *claim) write(ctx context.Context, outcome []byte) (dynamo.Item, error) {
	packed := dynamo.Pack(outcome)
	if len(packed) > maxPacked {
		return nil, fmt.Errorf("%w: %d bytes", errOutcomeTooLarge, len(packed))
	}
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	_, _, err := dynamo.Write(ctx, c.store.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:           &c.store.table,
		Key:                 dynamo.Item{"pk": dynamo.Text(c.pk)},
		UpdateExpression:    new("SET d = :d, n = :n"),
		ConditionExpression: new("o = :o AND attribute_not_exists(n) AND attribute_not_exists(freed)"),
		ExpressionAttributeValues: dynamo.Item{
			":o": dynamo.Text(c.owner), ":d": dynamo.Bytes(packed), ":n": dynamo.Number(1),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if stored, conflict := dynamo.ConditionFailed(err); conflict {
		return stored, errNotOwned
	}
	if err != nil {
		return nil, fmt.Errorf("idempotency: keep: %w", err)
	}
	return nil, nil
}

// free marks the key as free, after a request from which nothing reached a provider. The mark is later than the
// beginning of this claim and of each claim that lost to it, which begins before this write ends. So the key refuses a
// late copy of each.
func (c *claim) free(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dynamo.WriteTimeout)
	defer cancel()
	now := c.store.now()
	_, _, err := dynamo.Write(ctx, c.store.client.PutItem, &dynamodb.PutItemInput{
		TableName: &c.store.table,
		Item: dynamo.Item{
			"pk": dynamo.Text(c.pk), "o": dynamo.Text(c.owner),
			"freed":   dynamo.Number(max(now.Add(dynamo.WriteTimeout).UnixMicro(), c.began+1)),
			"expires": dynamo.Number(now.Add(keyLife).Unix()),
		},
		ConditionExpression: new("attribute_not_exists(pk) OR expires <= :now OR o = :o AND " +
			"attribute_not_exists(n)"),
		ExpressionAttributeValues: dynamo.Item{":o": dynamo.Text(c.owner), ":now": dynamo.Number(now.Unix())},
	})
	if _, conflict := dynamo.ConditionFailed(err); conflict || err == nil {
		return nil
	}
	return fmt.Errorf("idempotency: free: %w", err)
}
