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

	"svcapi/shared/dynamo"
)

// MaxShards is the largest number of shards of a wallet. One transaction moves credits between any of
// the shards, and DynamoDB accepts 100 items in one transaction.
const MaxShards = 64

// rebalancePause is the longest pause before a reservation looks again for credits that others were moving.
const rebalancePause = 25 * time.Millisecond

// walletID returns the name of a shard of a project's wallet; shard 0 has the project's own name.
func walletID(project string, shard int) string {
	if shard == 0 {
		return project
	}
	return project + "#" + strconv.Itoa(shard)
}

// parseWallet returns the project and the shard that a wallet's name consists of.
func parseWallet(wallet string) (project string, shard int, err error) {
	project, number, numbered := strings.Cut(wallet, "#")
	if numbered {
		shard, err = strconv.Atoi(number)
	}
	if err != nil || numbered && (shard < 1 || walletID(project, shard) != wallet) {
		return "", 0, fmt.Errorf("credit: %q is no wallet", wallet)
	}
	return project, shard, nil
}

// projectOf returns the project of a wallet.
func projectOf(wallet string) string {
	project, _, _ := strings.Cut(wallet, "#")
	return project
}

// shard returns the name of the shard that a reservation tries first. The digest of the request ID selects the shard.
func (r *Reservation) shard() string {
	_, digest, _ := strings.Cut(string(r.Key), "-")
	sum := fnv.New32a()
	sum.Write([]byte(digest))
	return walletID(r.Project, int(sum.Sum32()%uint32(max(r.Shards, 1)))) //nolint:gosec // at most MaxShards
}

// shardsIn returns the number of shards that a wallet's first shard names.
func shardsIn(wallet dynamo.Item) int {
	n, err := dynamo.NumberOf(wallet["shards"])
	if err != nil {
		return 1
	}
	return int(min(max(n, 1), MaxShards))
}

// AddShards creates the shards that a project's wallet lacks, up to the given number. New shards are
// empty: a reservation that lacks credits there moves credits to them. AddShards removes no shard; a shard
// that is no longer used keeps its credits until another shard needs them. AddShards may be repeated.
func (s *Store) AddShards(ctx context.Context, project string, shards int) error {
	if shards < 1 || shards > MaxShards {
		return fmt.Errorf("credit: %d shards, wants 1 to %d", shards, MaxShards)
	}
	if first, err := s.walletItem(ctx, project); err != nil {
		return fmt.Errorf("credit: add shards to the wallet: %w", err)
	} else if first == nil {
		return fmt.Errorf("%w: %s", ErrNoWallet, project)
	}
	for shard := 1; shard < shards; shard++ {
		if err := s.create(ctx, walletID(project, shard)); err != nil {
			return err
		}
	}
	if shards == 1 {
		return nil
	}
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.tables.Wallets,
		Key:                       walletKey(project),
		UpdateExpression:          aws.String("SET shards = :n"),
		ConditionExpression:       aws.String("attribute_exists(pk) AND (attribute_not_exists(shards) OR shards < :n)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": dynamo.Number(int64(shards))},
	})
	if _, refused := dynamo.Refused(err); refused || err == nil {
		return nil // refused: the wallet has as many shards, or more
	}
	return fmt.Errorf("credit: add shards to the wallet: %w", err)
}

// wallets returns the names of all shards of a project's wallet.
func (s *Store) wallets(ctx context.Context, project string) ([]string, error) {
	first, err := s.walletItem(ctx, project)
	if err != nil {
		return nil, err
	}
	all := make([]string, shardsIn(first))
	for shard := range all {
		all[shard] = walletID(project, shard)
	}
	return all, nil
}

// shardItems reads every existing shard of a project's wallet, and the further items that are named.
func (s *Store) shardItems(ctx context.Context, project string, further ...string) (map[string]dynamo.Item, error) {
	wallets, err := s.wallets(ctx, project)
	if err != nil {
		return nil, err
	}
	items := map[string]dynamo.Item{}
	for _, wallet := range append(wallets, further...) {
		if items[wallet] != nil {
			continue
		}
		item, err := s.walletItem(ctx, wallet)
		if err != nil {
			return nil, err
		}
		if item != nil {
			items[wallet] = item
		}
	}
	return items, nil
}

// sumOfShards returns the credits of a wallet whose first shard was read: the sum of the shards' balances, from the first
// two reads in a row without a move in between.
func (s *Store) sumOfShards(ctx context.Context, project string, first dynamo.Item) (int64, error) {
	const looks = 4
	shards := shardsIn(first)
	if shards == 1 {
		return dynamo.NumberOf(first["balance"])
	}
	var before shardBalances
	for range looks {
		now, err := s.readBalances(ctx, project, shards)
		if err != nil || before.unchanged(now) {
			return now.sum(), err
		}
		before = now
	}
	return before.sum(), nil
}

// shardBalances are the balances of a wallet's shards, in the shards' order.
type shardBalances []shardBalance

// shardBalance is the balance of one shard, with the number of moves between this shard and others.
type shardBalance struct{ balance, moves int64 }

// sum returns the sum of the balances. The project can spend that sum, unless credits moved during the read.
func (b shardBalances) sum() (credits int64) {
	for _, shard := range b {
		credits += shard.balance
	}
	return credits
}

// unchanged reports that no credits moved between shards from the read of b to the read of later. Each shard
// was then read before and after one common moment without a move in between.
func (b shardBalances) unchanged(later shardBalances) bool {
	return slices.EqualFunc(b, later, func(x, y shardBalance) bool { return x.moves == y.moves })
}

// readBalances reads the balances of the given number of shards, and of the further shards that the wallet names.
func (s *Store) readBalances(ctx context.Context, project string, shards int) (shardBalances, error) {
	b := make(shardBalances, 0, shards)
	for len(b) < shards {
		items, err := s.readShards(ctx, project, len(b), shards)
		if err != nil {
			return nil, fmt.Errorf("credit: read the wallet's shards: %w", err)
		}
		for shard := len(b); shard < shards; shard++ {
			var read shardBalance
			if item := items[walletID(project, shard)]; item != nil {
				if read.balance, err = dynamo.NumberOf(item["balance"]); err != nil {
					return nil, fmt.Errorf("credit: wallet %s: %w", walletID(project, shard), err)
				}
				read.moves, _ = dynamo.NumberOf(item["moves"]) // absent until the first move
			}
			b = append(b, read)
		}
		shards = max(shards, shardsIn(items[project])) // the cached project record may be older than the wallet
	}
	return b, nil
}

// readShards returns the items of the shards from one number up to and without another, by their names.
func (s *Store) readShards(ctx context.Context, project string, from, to int) (map[string]dynamo.Item, error) {
	var keys []map[string]types.AttributeValue
	for shard := from; shard < to; shard++ {
		keys = append(keys, walletKey(walletID(project, shard)))
	}
	read, err := s.batchGet(ctx, s.tables.Wallets, types.KeysAndAttributes{
		Keys: keys, ProjectionExpression: aws.String("pk, balance, moves, shards"),
	})
	items := map[string]dynamo.Item{}
	for _, item := range read {
		items[dynamo.TextOf(item["pk"])] = item
	}
	return items, err
}

// reserveRebalanced moves credits from other shards to the shard that refused the reservation, and repeats the
// reservation. A wallet of one shard has no others: reserveRebalanced then returns the refusal.
func (s *Store) reserveRebalanced(ctx context.Context, r *Reservation, refused *InsufficientError) error {
	shards := max(r.Shards, shardsIn(refused.wallet))
	if shards == 1 {
		return refused
	}
	_, shard, err := parseWallet(r.Wallet)
	if err != nil {
		return err
	}
	refused = &InsufficientError{}
	m := rebalancing{to: shard, anyShard: true, used: max(r.Shards, 1), want: r.Credits, sum: &refused.Balance}
	err = s.rebalanced(ctx, r.Project, shards, m, ErrInsufficientCredits, func(shard int) error {
		r.Wallet = walletID(r.Project, shard)
		return s.reserve(ctx, r)
	})
	if errors.Is(err, ErrInsufficientCredits) {
		return refused
	}
	return err
}

// gatherAndMove gathers credits in the first shard, which lacks them for a movement, and repeats the movement.
// gatherAndMove returns the error refused where all shards together lack the credits.
func (s *Store) gatherAndMove(ctx context.Context, project string, credits int64, refused error, move func() error) error {
	first, err := s.walletItem(ctx, project)
	if err != nil {
		return errors.Join(refused, err)
	}
	shards := shardsIn(first)
	m := rebalancing{used: shards, want: credits}
	if err = s.rebalanced(ctx, project, shards, m, ErrOutOfRange, func(int) error { return move() }); errors.Is(err, ErrOutOfRange) {
		return refused
	}
	return err
}

// rebalancing describes which credits one shard needs from the others.
type rebalancing struct {
	to       int    // the shard that lacks credits
	anyShard bool   // another shard would do as well
	used     int    // number of shards in use; shards beyond that number keep nothing
	want     int64  // the balance that the shard needs at least
	sum      *int64 // set to the balance of all shards; may be nil
}

// gatherIfFew changes the rebalancing where an even share for each shard is less than wanted: all credits then go
// to the richest shard, so that requests for the last credits do not take them from one another. Without gatherIfFew, 48
// requests at once for 20 charges' credits in 16 shards made half as many calls again.
func (m rebalancing) gatherIfFew(b shardBalances) rebalancing {
	if !m.anyShard || b.sum()/int64(m.used) >= m.want {
		return m
	}
	for shard := range b {
		if b[shard].balance > b[m.to].balance {
			m.to = shard
		}
	}
	m.want = b.sum()
	return m
}

// rebalanced moves credits to one shard and calls try with that shard, until try does not lack credits. rebalanced
// returns the error lacking where all shards together lack the credits at one moment, or where others kept moving
// the credits away for the time of Limits.Rebalance.
func (s *Store) rebalanced(
	ctx context.Context, project string, shards int, m rebalancing, lacking error, try func(shard int) error,
) error {
	var before shardBalances
	for until := time.Now().Add(s.limits.Rebalance); time.Now().Before(until); {
		now, err := s.readBalances(ctx, project, shards)
		if err != nil {
			return err
		}
		if m.sum != nil {
			*m.sum = now.sum()
		}
		if now.sum() < m.want {
			if before.unchanged(now) {
				return lacking
			}
			before = now
			continue // at once: credits may have moved during the read
		}
		m := m.gatherIfFew(now)
		if err := s.rebalance(ctx, project, now, m); err != nil {
			return err
		}
		if err := try(m.to); !errors.Is(err, lacking) {
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
	case <-time.After(rand.N(rebalancePause)):
		return nil
	}
}

// rebalance moves credits from the richest shards to one shard, until that shard holds an even share of all credits
// and at least the wanted balance. rebalance returns no error where others moved the credits first.
func (s *Store) rebalance(ctx context.Context, project string, b shardBalances, m rebalancing) error {
	taken := m.amounts(b)
	if len(taken) == 0 {
		return nil // another request has rebalanced the shard
	}
	var sum int64
	var writes []types.TransactWriteItem
	for _, shard := range slices.Sorted(maps.Keys(taken)) {
		sum += taken[shard]
		writes = append(writes, types.TransactWriteItem{Update: s.moveUpdate(walletID(project, shard), -taken[shard])})
	}
	receiver := s.moveUpdate(walletID(project, m.to), sum)
	// Of the requests that saw the shard lack credits at the same time, one moves credits to the shard.
	unmoved(receiver, b[m.to].moves)
	ctx, cancel := context.WithTimeout(ctx, s.limits.Write)
	defer cancel()
	_, _, err := dynamo.Write(ctx, s.client.TransactWriteItems, &dynamodb.TransactWriteItemsInput{
		TransactItems: append(writes, types.TransactWriteItem{Update: receiver}),
	})
	if err != nil && !slices.ContainsFunc(cancellationReasons(err), conditionFailed) {
		return fmt.Errorf("credit: rebalance shard %d: %w", m.to, err)
	}
	return nil
}

// unmoved adds the condition to an update of a shard that no credits have moved between this shard and others since the read.
func unmoved(update *types.Update, seen int64) {
	if seen == 0 {
		*update.ConditionExpression += " AND attribute_not_exists(moves)"
		return
	}
	*update.ConditionExpression += " AND moves = :seen"
	update.ExpressionAttributeValues[":seen"] = dynamo.Number(seen)
}

// amounts returns the credits that each other shard gives. Credits above an even share among the shards in use go
// first, and the richest shard's credits before others'. Credits below an even share follow where the first ones do
// not suffice.
func (m rebalancing) amounts(b shardBalances) map[int]int64 {
	even := b.sum() / int64(min(m.used, len(b)))
	needs := max(m.want, even) - b[m.to].balance
	order := make([]int, 0, len(b))
	for shard := range b {
		if shard != m.to {
			order = append(order, shard)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(b[y].balance, b[x].balance) })
	taken := map[int]int64{}
	for _, keep := range []int64{even, 0} {
		for _, shard := range order {
			least := keep
			if shard >= m.used {
				least = 0
			}
			if gives := min(needs, b[shard].balance-taken[shard]-least); gives > 0 {
				taken[shard] += gives
				needs -= gives
			}
		}
	}
	return taken
}

// moveUpdate returns the update that adds credits, signed, to a shard. The update fails where the shard has too few
// credits.
func (s *Store) moveUpdate(wallet string, credits int64) *types.Update {
	return &types.Update{
		TableName:           &s.tables.Wallets,
		Key:                 walletKey(wallet),
		UpdateExpression:    aws.String("SET balance = balance + :c ADD moves :one"),
		ConditionExpression: aws.String("balance >= :least"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":c": dynamo.Number(credits), ":least": dynamo.Number(max(0, -credits)), ":one": dynamo.Number(1),
		},
	}
}
