// Package capacity is a model of what DynamoDB gives to one key: an HTTP client for the AWS SDK between the product and
// DynamoDB Local. The model lets the engine do the work, counts what AWS would charge for the work, and refuses calls
// beyond the limits that AWS publishes. The model runs in the virtual time of testing/synctest, so that no result
// depends on the speed of the machine or of the engine.
//
// Modelled, from the Amazon DynamoDB developer guide ("Read and write operations", "Partitions and data distribution",
// "Throttling", "Item sizes and formats"):
//
//   - A partition serves 1,000 write units and 3,000 read units a second, and nothing splits one partition key whose
//     sort keys ascend, let alone one item. Each value of a table's partition key gets that much. An item is under one
//     such value, so that the limit of an item is never reached before.
//   - A write costs the larger of the item before and after it in units of 1 KB, rounded up: the engine's own
//     ConsumedCapacity. In a transaction it costs twice what the last other write of the item cost. A failed condition
//     costs the stored item, at least one unit.
//   - A consistent read costs one unit for each 4 KB, another one half.
//   - A refused call has no effect and costs nothing. The units of a write are known only afterwards: the one that
//     takes a key over its limit passes, and what it took too much is missing in the next second.
//   - Each call takes a while, drawn from a distribution with a seed; it takes effect halfway.
//
// Not modelled: burst capacity (up to 300 seconds of unused capacity, not promised); partitions that several keys share
// until AWS has split them; the limits of a table and of an account, and how fast a new on-demand table grows;
// conflicts of transactions. A write of an index fails the run.
package capacity

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// What one partition key value gets in a second, in units.
const (
	WriteLimit = 1000
	ReadLimit  = 3000
)

// Tick is the resolution of the model's time: calls arrive and end on full ticks. The calls of one tick are in the
// engine together, which makes a run fast.
const Tick = time.Millisecond

// typicalLatency returns the time of a call: 2 ms and more, 4 ms on average, 1 in 100 more than 11 ms, at most 50 ms.
func typicalLatency(r *rand.Rand) time.Duration {
	return min(2*time.Millisecond+time.Duration(r.ExpFloat64()*float64(2*time.Millisecond)), 50*time.Millisecond)
}

// Key is one partition key value of a table, in the wire format.
type Key struct{ Table, Value string }

// Load is the work that one key had.
type Load struct {
	Key
	Writes, Reads         float64 // units
	Calls                 int     // writes that were not refused
	Refused               int     // calls, writes and reads
	writeUsage, readUsage usage
}

// usage counts the units of one second.
type usage struct {
	second int64
	units  float64
}

// schema holds the attributes of a table's key; sort is empty for a table without a sort key.
type schema struct{ hash, sort string }

// Model is an HTTP client for the AWS SDK. New makes a model outside the synctest bubble in which the model is used.
type Model struct {
	engine  *engine
	schemas map[string]schema
	latency func(*rand.Rand) time.Duration

	mu     sync.Mutex
	random *rand.Rand
	loads  map[Key]*Load
	costs  map[string]float64 // of the last write of an item, by table and key
	err    error
}

// New makes a model over the tables that an engine holds now. The seed gives the latencies.
func New(ctx context.Context, client *dynamodb.Client, url string, tables []string, seed uint64) (*Model, error) {
	m := &Model{
		schemas: map[string]schema{}, latency: typicalLatency,
		random: rand.New(rand.NewPCG(seed, 0)), loads: map[Key]*Load{}, costs: map[string]float64{},
	}
	for _, table := range tables {
		out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			return nil, fmt.Errorf("capacity: %w", err)
		}
		keys := out.Table.KeySchema // the partition key first
		s := schema{hash: *keys[0].AttributeName}
		if len(keys) > 1 {
			s.sort = *keys[1].AttributeName
		}
		m.schemas[table] = s
	}
	var err error
	m.engine, err = connect(url)
	return m, err
}

// Close ends the connections to the engine.
func (m *Model) Close() { m.engine.close() }

// Err returns the first failure of the model. After a failure the results of the model are void.
func (m *Model) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Reset clears the counts of Loads and keeps the usage.
func (m *Model) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, l := range m.loads {
		m.loads[key] = &Load{Key: key, writeUsage: l.writeUsage, readUsage: l.readUsage}
	}
}

// Loads returns the work of each key since the start or Reset, the most written key first.
func (m *Model) Loads() []Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	var loads []Load
	for _, l := range m.loads {
		loads = append(loads, *l)
	}
	slices.SortFunc(loads, func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(b.Reads, a.Reads), cmp.Compare(a.Table, b.Table),
			cmp.Compare(a.Value, b.Value))
	})
	return loads
}

// Do implements aws.HTTPClient.
func (m *Model) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c, err := m.parse(operation, body)
	if err != nil {
		return nil, m.fail(fmt.Errorf("capacity: %s: %w", operation, err))
	}
	m.mu.Lock()
	latency := m.latency(m.random)
	m.mu.Unlock()

	effect := ceil(time.Now().Add(latency / 2))
	if err := wait(r.Context(), effect); err != nil {
		return nil, err // it has not arrived
	}
	status, response, err := m.execute(r.Header, c, effect)
	if err != nil {
		return nil, m.fail(fmt.Errorf("capacity: %s: %w", operation, err))
	}
	if err := wait(r.Context(), ceil(effect.Add(latency/2))); err != nil {
		return nil, err // it took effect
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " +
			http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(response)),
		ContentLength: int64(len(response)), Request: r,
	}, nil
}

// execute sends a call to the engine, where the keys of the call have capacity.
func (m *Model) execute(header http.Header, c *call, at time.Time) (status int, response []byte, err error) {
	if refused := m.admit(c, at); refused != nil {
		return http.StatusBadRequest, c.throttled(refused), nil
	}
	if status, response, err = m.engine.send(header, c.body); err != nil {
		return 0, nil, err
	}
	response, err = m.settle(c, at, status, response)
	return status, response, err
}

func (m *Model) fail(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = cmp.Or(m.err, err)
	return err
}

// ceil returns the first tick that is not before t.
func ceil(t time.Time) time.Time { return t.Add(Tick - 1).Truncate(Tick) }

func wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// load returns the load of a key; the caller holds the lock.
func (m *Model) load(key Key) *Load {
	if m.loads[key] == nil {
		m.loads[key] = &Load{Key: key}
	}
	return m.loads[key]
}

// admit returns the indexes of the charges whose key has no capacity left in this second. Where there are none, it
// takes what the call will probably cost.
func (m *Model) admit(c *call, at time.Time) (refused []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, ch := range c.charges {
		l := m.load(ch.key)
		if used, limit := l.usage(ch.item == "", at); used.units >= limit {
			l.Refused++
			refused = append(refused, i)
		}
	}
	if refused != nil {
		return refused
	}
	for i := range c.charges {
		ch := &c.charges[i]
		least := 1.0
		if ch.item == "" {
			least = 0.5
		}
		ch.cost = ch.times * max(least, m.costs[ch.item])
		used, _ := m.load(ch.key).usage(ch.item == "", at)
		used.units += ch.cost
	}
	return nil
}

// usage returns the usage of the second, with the units beyond the limit of earlier seconds, and the limit of a second.
// The caller holds the lock.
func (l *Load) usage(read bool, at time.Time) (u *usage, limit float64) {
	u, limit = &l.writeUsage, WriteLimit
	if read {
		u, limit = &l.readUsage, ReadLimit
	}
	if second := at.Unix(); u.second != second {
		u.units = max(0, u.units-limit*float64(second-u.second))
		u.second = second
	}
	return u, limit
}

// settle corrects what admit took by what the call has cost, and returns the response that the client asked for.
func (m *Model) settle(c *call, at time.Time, status int, response []byte) (_ []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := c.charges[0].cost
	if c.TransactItems == nil {
		if response, err = c.examine(status, response); err != nil {
			return nil, err
		}
	}
	for i, ch := range c.charges {
		l := m.load(ch.key)
		used, _ := l.usage(ch.item == "", at)
		if i == 0 {
			used.units += ch.cost - taken
		}
		switch {
		case ch.item == "":
			l.Reads += ch.cost
		case ch.cost > 0:
			l.Calls++
			l.Writes += ch.cost
			if c.TransactItems == nil && status == http.StatusOK {
				m.costs[ch.item] = ch.cost
			}
		}
	}
	return response, nil
}
