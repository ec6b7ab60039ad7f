// The function security detects disposable e-mail addresses and the risk of IP addresses.
package main

import (
	"bytes"
	"cmp"
	"context"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/functions/security/disposable"
	"svcapi/shared/burner"
	"svcapi/shared/cache"
	"svcapi/shared/iplookup"
	"svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

func main() {
	request.Main(
		func(c iplookup.Config) request.Config { return c.API },
		func(c iplookup.Config, s *request.Service, cfg aws.Config) ([]request.Route, error) {
			secrets := upstream.NewSecretCache(upstream.NewSecretsClient(cfg), c.API.Stage, c.Secrets, s.Stores.Log)
			chain := iplookup.NewChain(c, vendors.Risks, secrets)
			chain.ContinueOnUnknown = true
			store := burner.NewStore(s.DB(), c.API.ProjectsTable)
			email := &emailShield{store, newGlobalList(store, cache.Clock{}), s.AfterResponse}
			if email.global.due() {
				go func() { _ = email.global.refresh(context.Background()) }() // beside the start
			}
			return []request.Route{email.operation(), vpnShield(chain)}, nil
		},
	)
}

// emailRequest is the decoded body of POST /security/burner-email-shield.
type emailRequest struct {
	email  string // as in the request
	domain string // lower-case ASCII
}

// emailResult is openapi.yaml#BurnerEmailResult.
type emailResult struct {
	Email         string  `json:"email"`
	Domain        string  `json:"domain"`
	ValidSyntax   bool    `json:"is_valid_syntax"`
	Disposable    bool    `json:"is_disposable"`
	Source        string  `json:"source"` // the list by which the domain is disposable: custom, global or none
	ExecutionTime float64 `json:"execution_time_ms"`
}

// emailShield checks e-mail addresses.
type emailShield struct {
	own    *burner.Store
	global *globalList
	// after runs work when the response has been sent.
	after func(ctx context.Context, name string, work func(context.Context) error)
}

// operation returns the operation openapi.yaml#checkBurnerEmail, which calls no vendor. The security integration must
// be active, and decides only about the mode.
func (s *emailShield) operation() request.Route {
	return &request.Operation[emailRequest]{
		Name: "burner_email_shield", Method: "POST", Path: "/api/v1/security/burner-email-shield",
		Kind: project.Security, Price: wallet.BurnerEmailShield,
		Decode: decodeEmail,
		Prepare: func(ctx context.Context, call *request.Call, r emailRequest) (*request.Job, error) {
			if s.global.due() {
				s.after(ctx, "read global list", s.global.refresh) // the instance is not frozen within the read
			}
			return s.check(call, r), nil
		},
	}
}

const maxEmail = 255 // characters (openapi.yaml#BurnerEmailRequest)

func decodeEmail(in *request.Input) (emailRequest, error) {
	r := emailRequest{email: in.Text("email", request.Text{Required: true, Min: 1, Max: maxEmail})}
	if r.email == "" || len([]rune(r.email)) > maxEmail {
		return r, nil // the problem is noted
	}
	domain, err := burner.Domain(r.email)
	if err != nil {
		in.Problem("email", err.Error())
	}
	r.domain = domain
	return r, nil
}

// check reads the project's judgement, and searches the global list where there is none. ExecutionTime is the time of
// both.
func (s *emailShield) check(call *request.Call, r emailRequest) *request.Job {
	var own burner.Judgement
	var spent time.Duration
	return &request.Job{
		Credits: call.Credits(1),
		Prefetch: func(ctx context.Context) (err error) {
			start := time.Now()
			own, err = s.own.Find(ctx, call.Project.ID, r.domain)
			spent = time.Since(start)
			return err
		},
		Run: func(context.Context) (*request.Result, error) {
			start := time.Now()
			source := "none"
			if own == burner.Disposable {
				source = "custom"
			} else if own == burner.None && s.global.has(r.domain) {
				source = "global"
			}
			spent += time.Since(start)
			return &request.Result{Data: emailResult{
				Email: r.email, Domain: r.domain, ValidSyntax: true, Disposable: source != "none", Source: source,
				ExecutionTime: float64(spent.Microseconds()) / 1000,
			}}, nil
		},
	}
}

const (
	// globalLife is how long an instance uses what it has read: a change is in force within ten minutes, with the reading.
	globalLife = 9 * time.Minute
	// globalPause is the time after a failed read.
	globalPause = time.Minute
	// globalRead bounds one read.
	globalRead = 3 * time.Second
)

// globalList is the list of all projects: the table of package disposable with the difference of the published lists,
// and without the domains that are allowed for the stage. An instance reads both after a response; until then, and
// where a read fails, the list is as it was before.
type globalList struct {
	store *burner.Store
	clock cache.Clock

	mu      sync.Mutex
	read    time.Time // when the last read began; zero: never
	changes atomic.Pointer[changes]
}

// changes are those of the stage to the compiled table.
type changes struct {
	allowed    map[string]bool
	difference *disposable.Difference
	packed     []byte
}

func newGlobalList(store *burner.Store, clock cache.Clock) *globalList {
	g := &globalList{store: store, clock: clock}
	g.changes.Store(&changes{})
	return g
}

// has reports whether the list has a domain or one of its parents, and no domain among them is allowed.
func (g *globalList) has(domain string) bool {
	c := g.changes.Load()
	if _, listed := c.difference.Find(domain); !listed {
		return false
	}
	for d := domain; strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		if c.allowed[d] {
			return false
		}
	}
	return true
}

// due reports whether the last read is older than globalLife. The caller then calls refresh.
func (g *globalList) due() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock.Fresh(g.read, globalLife) {
		return false
	}
	g.read = g.clock.Now()
	return true
}

// refresh reads the changes of the list. After a failure the next read is due after globalPause.
func (g *globalList) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, globalRead)
	defer cancel()
	err := g.load(ctx)
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.read = g.clock.Now().Add(globalPause - globalLife)
	}
	return err
}

func (g *globalList) load(ctx context.Context) error {
	judged, err := g.store.List(ctx, burner.Stage)
	if err != nil {
		return err
	}
	before := g.changes.Load()
	after := &changes{map[string]bool{}, before.difference, before.packed}
	for _, domain := range judged.Allowed {
		after.allowed[domain] = true
	}
	if packed := judged.Difference.Packed; !bytes.Equal(before.packed, packed) {
		var difference *disposable.Difference
		if difference, err = disposable.Read(packed); err == nil { // otherwise the difference before stays in force
			after.difference, after.packed = difference, packed
		}
	}
	g.changes.Store(after)
	return err
}

var errUnavailable = &request.Error{
	Status: 503, Code: request.CodeServiceUnavailable,
	Message: "No security provider could complete the lookup. An unavailable check is not a safe result.",
}

// riskResult is openapi.yaml#VpnResult.
type riskResult struct {
	Address string `json:"ip_address"`
	vendors.Risk
	Provider string `json:"provider_name"`
}

// vpnShield returns the operation openapi.yaml#checkVpn.
func vpnShield(chain *iplookup.Chain[vendors.Risk]) request.Route {
	return &request.Operation[netip.Addr]{
		Name: "vpn_shield", Method: "POST", Path: "/api/v1/security/vpn-shield",
		Kind: project.Security, Price: wallet.VPNShield,
		Decode: func(in *request.Input) (netip.Addr, error) { return iplookup.Address(in, "ip"), nil },
		Prepare: func(ctx context.Context, call *request.Call, addr netip.Addr) (*request.Job, error) {
			return chain.Job(ctx, call, call.Integrations, addr, errUnavailable,
				func(found iplookup.Result[vendors.Risk]) *request.Result {
					return &request.Result{Data: riskResult{addr.String(), found.Value, cmp.Or(found.Vendor, "none")}}
				})
		},
	}
}
