package credit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"svcapi/shared/attr"
	"svcapi/shared/awsclient"
)

// MaxParts is how many parts a wallet can have. One transaction moves credits between any of them,
// and DynamoDB takes 100 items in one.
const MaxParts = 64

// fillPause is the longest pause before a reservation looks again for credits that others were moving.
const fillPause = 25 * time.Millisecond

// walletID names a part of a project's wallet; part 0 bears the project's own name.
func walletID(project string, part int) string {
	if part == 0 {
		return project
	}
	return project + "#" + strconv.Itoa(part)
}

func parseWallet(wallet string) (project string, part int, err error) {
	project, number, parted := strings.Cut(wallet, "#")
	if parted {
		part, err = strconv.Atoi(number)
	}
	if err != nil || parted && (part < 1 || walletID(project, part) != wallet) {
		return "", 0, fmt.Errorf("credit: %q is no wallet", wallet)
	}
	return project, part, nil
}

// part is the one of so many that a reservation tries first: any, by its request's digest.
func (k Key) part(parts int) int {
	_, digest, _ := strings.Cut(string(k), "-")
	sum := fnv.New32a()
	sum.Write([]byte(digest))
	return int(sum.Sum32() % uint32(max(parts, 1))) //nolint:gosec // at most MaxParts
}

// partsIn is how many parts a wallet's first part says there are.
func partsIn(wallet attr.Item) int {
	n, err := attr.NumberOf(wallet["parts"])
	if err != nil {
		return 1
	}
	return int(min(max(n, 1), MaxParts))
}

// Split makes sure that a project's wallet has at least so many parts. New ones are empty: credits
// come to them when a reservation lacks them there. Parts are never taken away; those that are no
// longer used keep what they hold until another part needs it. It may be repeated.
func (s *Store) Split(ctx context.Context, project string, parts int) error {
	if parts < 1 || parts > MaxParts {
		return fmt.Errorf("credit: %d parts, wants 1 to %d", parts, MaxParts)
	}
	for part := 1; part < parts; part++ {
		if err := s.create(ctx, walletID(project, part)); err != nil {
			return err
		}
	}
	if parts == 1 {
		return nil
	}
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.tables.Wallets,
		Key:                       walletKey(project),
		UpdateExpression:          aws.String("SET parts = :n"),
		ConditionExpression:       aws.String("attribute_exists(pk) AND (attribute_not_exists(parts) OR parts < :n)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": attr.Number(int64(parts))},

		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if wallet, refused := attr.Refused(err); refused {
		if wallet == nil {
			return fmt.Errorf("%w: %s", ErrNoWallet, project)
		}
		return nil // it has as many, or more
	}
	if err != nil {
		return fmt.Errorf("credit: split the wallet: %w", err)
	}
	return nil
}

// wallets names every part of a project's wallet.
func (s *Store) wallets(ctx context.Context, project string) ([]string, error) {
	first, err := s.walletItem(ctx, project)
	if err != nil {
		return nil, err
	}
	all := make([]string, partsIn(first))
	for part := range all {
		all[part] = walletID(project, part)
	}
	return all, nil
}

// purse is what the parts of a wallet hold, in their order.
type purse []holding

// holding is what one part holds, and how often credits moved between it and another.
type holding struct{ balance, moves int64 }

// total of the purse: what the project can spend, unless credits moved while it was read.
func (p purse) total() (sum int64) {
	for _, part := range p {
		sum += part.balance
	}
	return sum
}

// steady says that no credits moved between parts from the time that p was read until it was read
// again: each part was then seen before and after one same moment, and none moved in between.
func (p purse) steady(again purse) bool {
	return slices.EqualFunc(p, again, func(a, b holding) bool { return a.moves == b.moves })
}

// purse reads the parts, at least so many, one after another.
func (s *Store) purse(ctx context.Context, project string, parts int) (purse, error) {
	p := make(purse, 0, parts)
	for len(p) < parts {
		items, err := s.readParts(ctx, project, len(p), parts)
		if err != nil {
			return nil, fmt.Errorf("credit: read the wallet's parts: %w", err)
		}
		for part := len(p); part < parts; part++ {
			var h holding
			if item := items[walletID(project, part)]; item != nil {
				if h.balance, err = attr.NumberOf(item["balance"]); err != nil {
					return nil, fmt.Errorf("credit: wallet %s: %w", walletID(project, part), err)
				}
				h.moves, _ = attr.NumberOf(item["moves"]) // absent until the first
			}
			p = append(p, h)
		}
		parts = max(parts, partsIn(items[project])) // the record that was read may be older than the wallet
	}
	return p, nil
}

// readParts reads the parts from one to before another, by their names.
func (s *Store) readParts(ctx context.Context, project string, from, to int) (map[string]attr.Item, error) {
	var keys []map[string]types.AttributeValue
	for part := from; part < to; part++ {
		keys = append(keys, walletKey(walletID(project, part)))
	}
	items := map[string]attr.Item{}
	for {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.tables.Wallets: {
			Keys: keys, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("pk, balance, moves, parts"),
		}}})
		if err != nil {
			return nil, err
		}
		for _, item := range out.Responses[s.tables.Wallets] {
			items[attr.TextOf(item["pk"])] = item
		}
		if keys = out.UnprocessedKeys[s.tables.Wallets].Keys; len(keys) == 0 {
			return items, nil
		}
		if err := pause(ctx); err != nil { // the rest lacked capacity
			return nil, err
		}
	}
}

// reserveFilled goes on where the reservation's part lacks the credits: it fills the part from the
// others, and reserves then.
func (s *Store) reserveFilled(ctx context.Context, r *Reservation, parts int) error {
	f := filling{to: r.Part, anywhere: true, used: max(r.Parts, 1), want: r.Credits}
	return s.filled(ctx, r.Project, parts, f, ErrInsufficientCredits, func(part int) error {
		r.Part = part
		_, err := s.reserve(ctx, r)
		return err
	})
}

// gathered makes a movement that the first part was out of range for with what the others hold.
func (s *Store) gathered(ctx context.Context, project string, credits int64, refused error, move func() error) error {
	first, err := s.walletItem(ctx, project)
	if err != nil {
		return errors.Join(refused, err)
	}
	parts := partsIn(first)
	if err = s.filled(ctx, project, parts, filling{used: parts, want: credits}, ErrOutOfRange, func(int) error { return move() }); errors.Is(err, ErrOutOfRange) {
		return refused
	}
	return err
}

// filling is what a part wants of the others.
type filling struct {
	to       int   // the part
	anywhere bool  // any other part would do as well
	used     int   // how many parts are in use: those beyond keep nothing
	want     int64 // what it has to hold at least
}

// scarce is the filling when there is less for each part than is wanted. All credits are then gathered
// in the richest part, so that those who want the last ones do not take them from one another.
func (f filling) scarce(p purse) filling {
	if !f.anywhere || p.total()/int64(f.used) >= f.want {
		return f
	}
	for part := range p {
		if p[part].balance > p[f.to].balance {
			f.to = part
		}
	}
	f.want = p.total()
	return f
}

// filled fills a part from the others until take, which is told the part, does not lack credits. They are
// lacking when all parts together lack them, seen at one moment; or when others kept moving them away for
// as long as Limits.Fill.
func (s *Store) filled(ctx context.Context, project string, parts int, f filling, lacking error, take func(part int) error) error {
	var before purse
	for until := time.Now().Add(s.limits.Fill); time.Now().Before(until); {
		now, err := s.purse(ctx, project, parts)
		if err != nil {
			return err
		}
		if now.total() < f.want {
			if before.steady(now) {
				return lacking
			}
			before = now
			continue // at once: credits may have moved while they were read
		}
		before = nil
		f := f.scarce(now)
		if err := s.fill(ctx, project, now, f); err != nil {
			return err
		}
		if err := take(f.to); !errors.Is(err, lacking) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return lacking
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(fillPause)):
		return nil
	}
}

// fill moves credits from the richest parts to one, until that holds an even share of all and at least
// what is wanted. It is no error that others moved them first.
func (s *Store) fill(ctx context.Context, project string, p purse, f filling) error {
	taken := f.shares(p)
	if len(taken) == 0 {
		return nil // another has filled it
	}
	var sum int64
	var writes []types.TransactWriteItem
	for _, part := range slices.Sorted(maps.Keys(taken)) {
		sum += taken[part]
		writes = append(writes, types.TransactWriteItem{Update: s.moved(walletID(project, part), -taken[part])})
	}
	filled := s.moved(walletID(project, f.to), sum)
	// Of those who saw the part lack credits at once, one fills it.
	if seen := p[f.to].moves; seen == 0 {
		*filled.ConditionExpression += " AND attribute_not_exists(moves)"
	} else {
		*filled.ConditionExpression += " AND moves = :seen"
		filled.ExpressionAttributeValues[":seen"] = attr.Number(seen)
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	_, err := awsclient.Write(ctx, s.client.TransactWriteItems, &dynamodb.TransactWriteItemsInput{
		TransactItems: append(writes, types.TransactWriteItem{Update: filled}),
	})
	if err != nil && canceled(err) == nil {
		return fmt.Errorf("credit: fill part %d: %w", f.to, err)
	}
	return nil
}

// shares says how much each other part gives. What lies above an even share among the parts in use goes
// first, the richest part's before others'; the rest where that does not reach for what is wanted.
func (f filling) shares(p purse) map[int]int64 {
	even := p.total() / int64(min(f.used, len(p)))
	needs := max(f.want, even) - p[f.to].balance
	order := make([]int, 0, len(p))
	for part := range p {
		if part != f.to {
			order = append(order, part)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b].balance, p[a].balance) })
	taken := map[int]int64{}
	for _, keep := range []int64{even, 0} {
		for _, part := range order {
			least := keep
			if part >= f.used {
				least = 0
			}
			if gives := min(needs, p[part].balance-taken[part]-least); gives > 0 {
				taken[part] += gives
				needs -= gives
			}
		}
	}
	return taken
}

// moved is the update that adds credits, signed, to a part. A part does not give what it lacks.
func (s *Store) moved(wallet string, credits int64) *types.Update {
	return &types.Update{
		TableName:           &s.tables.Wallets,
		Key:                 walletKey(wallet),
		UpdateExpression:    aws.String("SET balance = balance + :c ADD moves :one"),
		ConditionExpression: aws.String("balance >= :least"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":c": attr.Number(credits), ":least": attr.Number(max(0, -credits)), ":one": attr.Number(1),
		},
	}
}
