// Package credit is the money of a project: a wallet that holds what is in flight, and a ledger
// whose entries are what happened.
//
// A paid request reserves its credits, works, and captures them; work that fails releases them.
// Each step is one conditional write that may be repeated, and the process may die between any two:
// what a dead request left is settled later by a scheduled function. Always holds
//
//	balance + pending without a capture + captures − refunds − adjustments = grants
//
// and the balance is never negative. Amounts are whole credits; a US dollar is 1,000,000.
//
// One item of DynamoDB takes 1,000 write units a second. The wallet of a project that needs more is
// kept in several parts, each of them a wallet of its own with its own entries. Credits move between
// the parts where one lacks them, so that a request is refused only when all of them together do.
package credit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/awsclient"
)

// Reservation is credits set aside for one request.
type Reservation struct {
	Project string
	// Parts that the project's wallet is used in, as its record says; 0 and 1: it is whole.
	Parts int
	// Part that holds the reservation, set by Reserve.
	Part        int
	Key         Key
	Credits     int64  // above 0
	Operation   string // as the price list names it
	Environment string
	RequestID   string
	// Irrevocable work cannot be taken back once begun (SMS): it is marked before the first byte
	// leaves, and giving its credits back leaves an entry that bars every later charge.
	Irrevocable bool
	// Vendor that is about to be called; an uncertain entry names it if the request dies.
	Vendor string
	// Attempts is how many attempts of Reserve may have taken effect, set by Reserve: the one that did,
	// and each failed one that DynamoDB did not turn away. After more than one, a late copy may still arrive.
	Attempts int

	unsure   int // failed attempts of Reserve that may have taken effect, in whatever part of the wallet
	captured bool
}

// Outcome is how successful work ended.
type Outcome struct {
	// Uncertain: the vendor was reached, no usable answer came back. Charged, and listed for the
	// operator to resolve.
	Uncertain bool
	// Vendor that did the work, if any.
	Vendor string
}

var (
	// ErrInsufficientCredits refuses a reservation: the wallet holds less, or does not exist.
	ErrInsufficientCredits = errors.New("credit: insufficient credits")
	// ErrInvalidReservation refuses a reservation of no credits, for no project or with a key without a time.
	ErrInvalidReservation = errors.New("credit: invalid reservation")
	// ErrSettled says that the reservation was settled while its request was alive. It means that
	// the settling function's ages are below what a function can live.
	ErrSettled = errors.New("credit: reservation settled while its request was alive")
)

// Limits bound the writes of a request, so that its response is out before its client gives up.
type Limits struct {
	// Write bounds Reserve, Mark, Capture, and each write of Release, with all attempts and pauses.
	Write time.Duration
	// Remove bounds Remove, which is skipped when less than this remains before the context's
	// deadline, and each write of Settle: the next run of the settling function does what is left.
	Remove time.Duration
	// Fill bounds how long a reservation waits for credits that others move between the wallet's parts.
	Fill time.Duration
}

// DefaultLimits bound a request's writes: the last ones fit into the 5 seconds that it keeps back for them.
var DefaultLimits = Limits{Write: awsclient.WriteTimeout, Remove: time.Second, Fill: 2 * time.Second}

// Tables are the names of the tables.
type Tables struct{ Wallets, Ledger string }

// Store reads and writes wallets and their ledger. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	tables Tables
	limits Limits
}

// NewStore expects a client of awsclient.DynamoDB: the protocol counts on its attempts.
func NewStore(client *dynamodb.Client, tables Tables) *Store {
	return &Store{client: client, tables: tables, limits: DefaultLimits}
}

// WithLimits is the same store with other limits.
func (s *Store) WithLimits(l Limits) *Store {
	other := *s
	other.limits = l
	return &other
}

// wallet is the one that holds the reservation.
func (r *Reservation) wallet() string { return walletID(r.Project, r.Part) }

// Reserve takes the credits out of the balance, in one of the wallet's parts. It returns
// ErrInsufficientCredits when all parts together lack them, or another error when no attempt was
// answered: what may have been taken has then been given back.
func (s *Store) Reserve(ctx context.Context, r *Reservation) error {
	if r.Credits <= 0 || r.Project == "" || r.Key.Time().IsZero() {
		return fmt.Errorf("%w: %d credits with key %q for project %q", ErrInvalidReservation, r.Credits, r.Key, r.Project)
	}
	r.Part = r.Key.part(r.Parts)
	parts, err := s.reserve(ctx, r)
	if errors.Is(err, ErrInsufficientCredits) && parts > 1 {
		return s.reserveFilled(ctx, r, parts)
	}
	return err
}

// reserve takes the credits out of the reservation's part. Where that lacks them it also tells how
// many parts there are.
func (s *Store) reserve(ctx context.Context, r *Reservation) (parts int, err error) {
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	unsure, err := awsclient.Write(timed, s.client.UpdateItem, &dynamodb.UpdateItemInput{
		TableName:                &s.tables.Wallets,
		Key:                      walletKey(r.wallet()),
		UpdateExpression:         aws.String("SET balance = balance - :c, pending.#k = :p"),
		ConditionExpression:      aws.String("balance >= :c AND attribute_not_exists(pending.#k)"),
		ExpressionAttributeNames: map[string]string{"#k": string(r.Key)},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":c": attr.Number(r.Credits),
			":p": encodePending(r),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	r.unsure += unsure
	if err == nil {
		r.Attempts = 1 + r.unsure
		return 0, nil
	}
	if wallet, refused := attr.Refused(err); refused {
		if _, mine := pendingOf(wallet)[string(r.Key)]; mine { // an earlier attempt had landed
			r.Attempts = 2 // at least
			return 0, nil
		}
		return max(r.Parts, partsIn(wallet)), ErrInsufficientCredits
	}
	err = fmt.Errorf("credit: reserve: %w", err)
	if r.unsure == 0 {
		return 0, err // DynamoDB turned every attempt away: nothing was taken
	}
	r.Attempts = 2
	return 0, errors.Join(err, s.Release(ctx, r))
}

// Mark notes that irrevocable work is about to begin: from here on a request that dies is charged.
// On any error nothing may be sent; what was reserved has then been given back.
func (s *Store) Mark(ctx context.Context, r *Reservation) error {
	timed, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	stands, err := s.put(timed, r.wallet(), entryOf(r, Sending), "")
	switch {
	case err == nil, stands == Sending: // an earlier attempt had landed
		return nil
	case stands != "":
		return fmt.Errorf("%w: mark found it %s", ErrSettled, stands)
	}
	return errors.Join(fmt.Errorf("credit: mark: %w", err), s.Release(ctx, r))
}

// Capture writes the entry that charges the project: the commit. After an error that is not
// ErrSettled the charge is unknown; the request has succeeded all the same. The context's deadline
// is the request's, not the work's.
func (s *Store) Capture(ctx context.Context, r *Reservation, o Outcome) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	entry := entryOf(r, Captured)
	entry.Uncertain = o.Uncertain
	if o.Vendor != "" {
		entry.Vendor = o.Vendor
	}
	allowed := State("")
	if r.Irrevocable {
		allowed = Sending
	}
	stands, err := s.put(ctx, r.wallet(), entry, allowed)
	switch {
	case err == nil, stands == Captured: // an earlier attempt had landed
		r.captured = true
		return nil
	case errors.Is(err, errRefused):
		return fmt.Errorf("%w: capture found it %q", ErrSettled, stands)
	}
	return fmt.Errorf("credit: capture: %w", err)
}

// Remove takes a captured reservation out of the wallet. Nothing depends on it, so it has no error:
// what it leaves, the settling function removes. It does nothing unless Capture succeeded, after a
// reservation whose Attempts are more than one (a late copy of the first must still find its key), and
// when there is no time.
func (s *Store) Remove(ctx context.Context, r *Reservation) {
	if !r.captured || r.Attempts > 1 {
		return
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < s.limits.Remove {
		return
	}
	ctx, cancel := within(ctx, s.limits.Remove)
	defer cancel()
	_ = s.remove(ctx, r.wallet(), r.Key)
}

// Release gives the credits of failed work back. Irrevocable work is barred from being charged
// first; if that is refused or not answered, the settling function decides. An error is for the log:
// the credits come back when the reservation is settled.
func (s *Store) Release(ctx context.Context, r *Reservation) error {
	if r.Irrevocable {
		if err := s.bar(ctx, r); err != nil {
			return fmt.Errorf("credit: release: %w", err)
		}
	}
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	if err := s.giveBack(ctx, r.wallet(), r.Key, r.Credits); err != nil {
		return fmt.Errorf("credit: release: %w", err)
	}
	return nil
}

func (s *Store) bar(ctx context.Context, r *Reservation) error {
	ctx, cancel := within(ctx, s.limits.Write)
	defer cancel()
	_, err := s.put(ctx, r.wallet(), entryOf(r, Released), "", Sending, Released)
	return err
}

// remove takes the key out of the wallet; one that is gone already is no error.
func (s *Store) remove(ctx context.Context, wallet string, key Key) error {
	return s.unpend(ctx, &dynamodb.UpdateItemInput{
		UpdateExpression: aws.String("REMOVE pending.#k"),
	}, wallet, key)
}

// giveBack takes the key out of the wallet and adds its credits to the balance, once.
func (s *Store) giveBack(ctx context.Context, wallet string, key Key, credits int64) error {
	return s.unpend(ctx, &dynamodb.UpdateItemInput{
		UpdateExpression:          aws.String("SET balance = balance + :c REMOVE pending.#k"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": attr.Number(credits)},
	}, wallet, key)
}

func (s *Store) unpend(ctx context.Context, update *dynamodb.UpdateItemInput, wallet string, key Key) error {
	update.TableName = &s.tables.Wallets
	update.Key = walletKey(wallet)
	update.ConditionExpression = aws.String("attribute_exists(pending.#k)")
	update.ExpressionAttributeNames = map[string]string{"#k": string(key)}
	_, err := awsclient.Write(ctx, s.client.UpdateItem, update)
	if _, refused := attr.Refused(err); refused {
		return nil
	}
	return err
}

// within bounds ctx by the limit, and keeps it from being cancelled with the work: only its deadline
// still counts.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	until := time.Now().Add(limit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}
