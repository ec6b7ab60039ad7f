package faults

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"svcapi/shared/project"
	"svcapi/shared/wallet"
)

// planner makes the plan of a seed.
type planner func(seed uint64, prices wallet.Prices) *plan

// operation is a paid operation.
type operation struct {
	name     string // as the ledger names it
	function string // logical ID
	kind     project.Kind
	path     string
	body     string // %s is the request's token
	share    int
}

// pdf is rare, as a render takes longer than a whole schedule without renders.
var pdf = operation{wallet.PDF, "PdfFunction", project.PDF, "/api/v1/utilities/pdf/generate", `{"html":"<p>%s</p>"}`, 0}

var operations = []operation{
	{wallet.SMS, "SmsFunction", project.SMS, "/api/v1/sms/send", "", 50},
	{wallet.Barcode, "BarcodeFunction", project.Barcode, "/api/v1/utilities/barcode/generate", `{"data":"%s"}`, 15},
	{wallet.QRCode, "BarcodeFunction", project.Barcode, "/api/v1/utilities/qrcode/generate", `{"data":"%s"}`, 5},
	{wallet.BurnerEmailShield, "SecurityFunction", project.Security, "/api/v1/security/burner-email-shield",
		`{"email":"%s@example.com"}`, 8},
	{wallet.VPNShield, "SecurityFunction", project.Security, "/api/v1/security/vpn-shield", `{"ip":%q}`, 11},
	{wallet.Location, "LocationFunction", project.Location, "/api/v1/location/lookup", `{"ip":%q}`, 11},
}

// unlimited is a rate limit that no schedule reaches.
const unlimited = 1_000_000

// pdfEvery is how many schedules there are for one with PDFs.
const pdfEvery = 25

// plan is a schedule before it runs. All of it follows from the seed.
type plan struct {
	seed          uint64
	requests      []*request
	commands      []*command
	order         []starter  // requests and commands, in the order of their starts
	credits       int64      // the wallet's first balance
	limit         int        // requests an hour
	perNumber     int        // messages to one number a day; 0: no limit
	daily         int64      // credits, or SMS units of a Manual project, a day; 0: no limit
	rich          bool       // the credits are more than all requests together can cost
	busy          *operation // of all requests, which are many; nil: a few of any operation
	most          int        // requests and commands that are alive at once
	closed        bool       // the first vendor of each chain refuses connections
	dialog        bool       // SMS go through dialogv2, which knows each send by its reference
	byok          bool       // the project has its own vendor accounts: nothing is charged
	loss          float64    // chance that a request is dropped; for responses the chance is lower
	refusal       float64    // chance of a throttle or a 500
	bursts        float64    // chance that a call is throttled from its first attempt on, up to mostThrottles times
	throttledStep step       // the step where most calls meet such a burst; empty: no step
	lateCopies    float64    // chance that a dropped attempt arrives later
	outage        float64    // chance that a vendor's call fails
	crash         float64    // chance per call that its process is killed there
	virtual       bool       // in virtual time, in this process
	stops         bool       // the clocks of instances stop
	planted       step       // a step that DynamoDB refuses for good, which no fault explains; empty: no step
	lossy         step       // the step where most calls are lost, and more processes die; empty: no step
}

// lossySteps are the steps where most calls of a schedule may be lost. Important steps are in the list more than once.
var lossySteps = []step{
	"", "", "", recipient, daily, subtract, reserve, reserve, mark, vendor, capture, capture, capture, forbidCapture,
	returnCredits, claim, keep, free, count, movement, remove,
}

// mostThrottles is the longest burst of throttles. Twenty pauses fit into the time that a request has for one write.
const mostThrottles = 20

// throttledSteps are the steps where most calls of a schedule may be throttled.
var throttledSteps = append(slices.Repeat([]step{""}, 24), append(changes, record, domains, scan, look)...)

// burst is how many attempts at the beginning of a call are throttled.
func (p *plan) burst(s step, call string) int {
	chance := p.bursts
	switch {
	case s == p.throttledStep:
		chance = 0.8
	case !s.writes(): // many bursts end a read, and so the request
		chance /= 4
	}
	if s == vendor || s == question || !p.chance(chance, call, "burst") {
		return 0
	}
	return 1 + int(p.uniform(call, "length")*mostThrottles)
}

// starter is a request or an operator's command.
type starter interface{ label() string }

// request is one request of a client, and its outcome.
type request struct {
	number   int
	op       *operation
	body     string
	token    string // identifies the request at the vendor; repeats of a key share the first request's token
	key      string // Idempotency-Key
	first    *request
	changed  bool // the request repeats a key with another body
	rejected bool // the vendor will refuse
	unknown  bool // the vendor will not know the address
	price    int64
	units    int64  // of a message
	to       string // the number of a message
	after    bool   // a repeat after all other requests are dead
	limited  bool   // in virtual time: the rate limit refuses
	doubtful bool   // in virtual time: no usable response of the vendor comes

	actor    *actor
	response response
	charged  bool
	odd      bool // a known anomaly: charged though the request failed
	timedOut bool // the function says that a time limit ended, and its time was long enough for one
	sent     bool // in virtual time: the vendor was called
	stopped  bool // the clock of its instance has stopped before
	settled  bool // the wallet says that the reservation was settled while the request was alive
}

func (r *request) label() string { return fmt.Sprintf("request %d", r.number) }

// command is an operator's command, repeated until a response comes.
type command struct {
	name    string
	args    []string
	id      wallet.Key // of the movement; empty: the command names a charge
	credits int64
	state   wallet.State

	done, refused bool
}

func (c *command) label() string { return c.name }

// uniform draws from the seed and a name: the same name gives the same number, whatever was drawn before.
func (p *plan) uniform(name ...string) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, p.seed, "/", strings.Join(name, "/"))
	x := h.Sum64() // splitmix's last steps spread names that differ little
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

func (p *plan) chance(of float64, name ...string) bool { return p.uniform(name...) < of }

func newPlan(seed uint64, prices wallet.Prices) *plan {
	rng := rand.New(rand.NewPCG(seed, 11))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	p := &plan{
		seed: seed, limit: unlimited, closed: rng.IntN(6) == 0,
		loss: pick(0, 0.04, 0.1, 0.25), refusal: pick(0, 0, 0.1, 0.3), outage: pick(0, 0.1, 0.4), crash: pick(0, 0.01, 0.03),
	}
	p.lossy = lossySteps[rng.IntN(len(lossySteps))]
	total := 3 + rng.IntN(6)
	p.most = most
	if rng.IntN(4) == 0 { // enough requests of one instance for leases of several slots
		total, p.most = 12+rng.IntN(8), 1+rng.IntN(2)
		p.busy = &operations[slices.IndexFunc(operations,
			func(o operation) bool { return o.name == []string{wallet.SMS, wallet.Barcode}[total%2] })]
	}
	var cost int64
	for n := range total {
		r := p.newRequest(rng, n, prices)
		p.requests = append(p.requests, r)
		cost += r.price
	}
	if seed%pdfEvery == 0 {
		r := p.requests[rng.IntN(total)]
		*r = request{number: r.number, op: &pdf, token: r.token, body: fmt.Sprintf(pdf.body, r.token),
			price: prices[pdf.name]}
		r.first = r
	}
	switch rng.IntN(10) {
	case 0, 1, 2:
		p.credits = rng.Int64N(cost + 1)
	case 3:
		p.credits = cost / 2
	default:
		p.credits, p.rich = 2*cost+1_000_000_000, true
	}
	if rng.IntN(8) == 0 {
		p.limit = 1 + rng.IntN(total)
	}
	if rng.IntN(12) == 0 {
		p.byok, p.rich = true, true
		for _, r := range p.requests {
			r.price = 0
		}
	}
	p.repeatKeys(rng)
	for _, r := range p.requests {
		p.order = append(p.order, r)
	}
	p.addCommands(rng, cost)
	p.bursts, p.throttledStep, p.lateCopies = pick(0, 0, 0.05, 0.15), throttledSteps[rng.IntN(len(throttledSteps))],
		pick(0.1, 0.5, 0.9)
	tight := p.lossy == recipient || p.lossy == daily || p.lossy == subtract
	every := rng.IntN(3) == 0 // limits of every kind
	if every && p.limit == unlimited {
		p.limit = 1 + rng.IntN(2*total)
	}
	if rng.IntN(4) == 0 || tight || every {
		p.perNumber = 1 + rng.IntN(4)
	}
	if rng.IntN(4) == 0 || tight || every {
		if p.daily = 1 + rng.Int64N(cost+1); p.byok {
			p.daily = 1 + rng.Int64N(6)
		}
	}
	if p.dialog = !p.byok && rng.IntN(4) == 0; p.dialog {
		p.outage, p.lateCopies, p.limit, p.perNumber, p.daily = 0.7, 0.9, unlimited, 0, 0
	}
	return p
}

// amount returns what a request counts of the day.
func (p *plan) amount(r *request) int64 {
	if p.byok {
		return r.units
	}
	return r.price
}

func (p *plan) newRequest(rng *rand.Rand, n int, prices wallet.Prices) *request {
	at := rng.IntN(100)
	op := &operations[0]
	for i := range operations {
		if op = &operations[i]; at < op.share {
			break
		}
		at -= op.share
	}
	if p.busy != nil {
		op = p.busy
	}
	r := &request{number: n, op: op, token: fmt.Sprintf("M%dR%dE", p.seed, n), price: prices[op.name]}
	r.first = r
	switch op.name {
	case wallet.SMS:
		to, text := "0771234567", r.token
		if r.rejected = rng.IntN(8) == 0; r.rejected {
			to = "0770000001"
		}
		if rng.IntN(6) == 0 {
			text += " " + strings.Repeat("x", 160)
			r.price *= 2
		}
		r.to, r.units = to, r.price/prices[op.name]
		r.body = fmt.Sprintf(`{"send_method":"single","to":%q,"message":%q}`, to, text)
		if rng.IntN(2) == 0 {
			r.key = fmt.Sprintf("key-%d-%d", p.seed, n)
		}
		return r
	case wallet.VPNShield, wallet.Location:
		r.token = fmt.Sprintf("112.134.7.%d", n+1)
		if op.name == wallet.Location && !slices.ContainsFunc(p.requests, func(o *request) bool { return o.unknown }) &&
			rng.IntN(4) == 0 {
			r.unknown, r.token = true, "45.83.0.7"
		}
	}
	r.body = fmt.Sprintf(op.body, r.token)
	return r
}

// repeatKeys adds repeats by clients that got no response or do not wait: the same key, mostly with the same body.
func (p *plan) repeatKeys(rng *rand.Rand) {
	for _, first := range slices.Clone(p.requests) {
		if first.key == "" {
			continue
		}
		for range rng.IntN(3) {
			again := p.repeat(first, rng.IntN(8) == 0)
			at := first.number + 1 + rng.IntN(len(p.requests)-first.number)
			p.requests = slices.Insert(p.requests, min(at, len(p.requests)), again)
			for i, r := range p.requests {
				r.number = i
			}
		}
	}
}

func (p *plan) repeat(first *request, changed bool) *request {
	again := *first
	again.first, again.changed, again.actor, again.response = first, changed, nil, response{}
	again.number = len(p.requests)
	if changed {
		again.body = strings.Replace(again.body, first.token, first.token+" otherwise", 1)
	}
	return &again
}

// addCommands adds the operators' commands.
func (p *plan) addCommands(rng *rand.Rand, cost int64) {
	add := func(state wallet.State, by int64) {
		c := &command{name: fmt.Sprintf("%s %d", state, len(p.commands)), state: state, credits: by}
		p.commands = append(p.commands, c)
		p.order = slices.Insert(p.order, rng.IntN(len(p.order)+1), starter(c))
	}
	if rng.IntN(12) == 0 {
		add(wallet.Granted, 1+rng.Int64N(cost+1))
	}
	if rng.IntN(12) == 0 {
		by := 1 + rng.Int64N(cost/2+1)
		if rng.IntN(2) == 0 {
			by = -by
			p.rich = false
		}
		add(wallet.Adjustment, by)
	}
}

// fill sets the commands' arguments: a movement's ID contains the time.
func (p *plan) fill(projectID string) {
	for _, c := range p.commands {
		c.id = wallet.NewKey(time.Now(), c.name+projectID)
		c.args = []string{"credit", "grant", projectID, fmt.Sprint(c.credits), "--reason", "test", "--id", string(c.id)}
		if c.state == wallet.Adjustment {
			c.args = []string{"credit", "adjust", projectID, "--by", fmt.Sprint(c.credits), "--reason",
				"test", "--id", string(c.id)}
		}
	}
}
