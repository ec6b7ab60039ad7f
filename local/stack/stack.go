// Package stack puts the local stack together: the engine, the secrets endpoint, the vendor sandbox, the compiled
// functions, the gateway and the schedules, all in this process and its children.
package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"golang.org/x/sync/errgroup"

	"svcapi/functions/security/disposable"
	"svcapi/functions/security/disposable/lists"
	"svcapi/local/demo"
	"svcapi/local/engine"
	"svcapi/local/gateway"
	"svcapi/local/jail"
	"svcapi/local/lambda"
	"svcapi/local/sandbox"
	"svcapi/local/secrets"
	"svcapi/local/template"
	"svcapi/local/workdir"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates"
	"svcapi/shared/secret"
	"svcapi/shared/wallet"
)

// laptop holds the template's parameters that differ on a laptop.
var laptop = map[string]string{
	"Stage":                "local",
	"VendorTimeoutSeconds": "4",
	"LogPayloads":          "on",
	// One person uses all projects here: AWS's default quotas of an account.
	"ApiRequestsPerSecond": "10000",
	"ApiBurst":             "5000",
}

// OnLaptop returns a function with those values of its variables that differ on a laptop in a way that the template
// does not permit.
func OnLaptop(f template.Function) template.Function {
	f.Environment = maps.Clone(f.Environment)
	switch f.Folder {
	case "settle":
		f.Environment["SETTLE_AFTER_SECONDS"] = "50" // 110 seconds are too long to watch a lease settle
	case "docs": // the playground starts with the credentials of a demo project
		credential := demo.CredentialOf("managed", project.Development)
		f.Environment["DEMO_CLIENT_ID"], f.Environment["DEMO_CLIENT_SECRET"] = credential.ClientID, credential.ClientSecret
	}
	return f
}

// Addresses holds the URLs of a running stack and its parts, and the folder of its logs.
type Addresses struct {
	BaseURL     string `json:"base_url"` // the API's root, up to /api/v1
	DocsURL     string `json:"docs_url"`
	SandboxURL  string `json:"sandbox_url"`
	DynamoDBURL string `json:"dynamodb_url"`
	SecretsURL  string `json:"secrets_url"`
	LambdaURL   string `json:"lambda_url"` // of the Lambda API, with which functions call one another
	LogDir      string `json:"log_dir"`
}

// Overrides returns the template's parameters for functions that use a running stack: the parameters of a laptop, and
// the addresses of the stack's engine, secrets endpoint, vendor sandbox and Lambda API.
func (a Addresses) Overrides() map[string]string {
	overrides := maps.Clone(laptop)
	overrides["DynamoDbEndpointUrl"] = a.DynamoDBURL
	overrides["SecretsManagerEndpointUrl"] = a.SecretsURL
	overrides["RatesEndpointUrl"] = a.SandboxURL
	overrides["ListsEndpointUrl"] = a.SandboxURL
	overrides["LambdaEndpointUrl"] = a.LambdaURL
	return overrides
}

// Options of Start.
type Options struct {
	Port        int               // of the gateway, on 127.0.0.1; 0: a free one
	LogDir      string            // for the logs of functions and gateway; required. Close removes its *.log files.
	DemoFile    string            // where the stack's addresses and credentials are written while it runs; empty: nowhere
	Log         io.Writer         // for the engine's output and the schedules' errors; default stack.log in LogDir
	Progress    func(string)      // receives a short text for each slow step
	Parameters  map[string]string // of the template, beside those of a laptop
	Environment map[string]string // of the functions, beside the template's: what lambda.Options permits
	Concurrency int               // most processes per function; default lambda's
	Account     int               // most events at once over all functions; default lambda's
	// Through gives the functions another way to an AWS service than its URL, by the variable that names it
	// (AWS_ENDPOINT_URL_DYNAMODB), such as one that records their calls. Default: the URL itself.
	Through func(variable, url string) (string, error)
}

// Stack is a running local stack.
type Stack struct {
	Addresses
	Parameters map[string]string // the template's overrides in force
	Prices     wallet.Prices
	Projects   []demo.Project
	Store      *admin.Store // of the projects
	Credit     *books.Store
	Template   *template.Template
	Sandbox    *sandbox.Server
	Jail       *jail.Jail // in which the functions run

	*lambda.Host // runs the functions, which its methods name by their logical IDs

	binaries map[string]string // by logical ID
	pdf      *pdf
	lambda   net.Listener
	closers  []func() error // the last one is called first
}

// Start starts the components in turn and returns when the stack responds. A component that fails ends the others.
func Start(ctx context.Context, options Options) (_ *Stack, err error) {
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	s := &Stack{Addresses: Addresses{LogDir: options.LogDir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, step := range []func(context.Context, *Options) error{s.prepare, s.backends, s.data, s.serve, s.announce} {
		if err := step(ctx, &options); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close ends every component. Close may be called more than once.
func (s *Stack) Close() error {
	var errs []error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		closer := s.closers[last]
		s.closers = s.closers[:last]
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

func (s *Stack) onClose(f func() error) { s.closers = append(s.closers, f) }

// prepare checks the port, takes the folder of the logs until Close, and opens the logs.
func (s *Stack) prepare(_ context.Context, options *Options) error {
	if options.Port != 0 {
		listener, err := net.Listen("tcp", address(options.Port))
		if err != nil {
			return fmt.Errorf("port %d is taken: choose another one with PORT=…: %w", options.Port, err)
		}
		listener.Close()
	}
	if err := os.MkdirAll(s.LogDir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(s.LogDir)
	if err != nil {
		return err
	}
	s.onClose(dir.Close)
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another stack runs in this folder and writes to %s: end it first: %w", s.LogDir, err)
	}
	s.onClose(s.removeLogs)
	err = s.removeLogs()
	if err == nil && options.Log == nil {
		options.Log, err = s.openLog("stack.log")
	}
	return err
}

func (s *Stack) openLog(name string) (*os.File, error) {
	log, err := workdir.OpenLog(filepath.Join(s.LogDir, name))
	if err == nil {
		s.onClose(log.Close)
	}
	return log, err
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (s *Stack) removeLogs() error {
	logs, err := filepath.Glob(filepath.Join(s.LogDir, "*.log"))
	for _, log := range logs {
		if gone := os.Remove(log); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// backends starts the functions' dependencies, builds the functions, and reads the template with the addresses.
func (s *Stack) backends(ctx context.Context, options *Options) (err error) {
	if s.Template, err = template.Load(options.Parameters); err != nil {
		return err
	}
	vault, err := secrets.Start()
	if err != nil {
		return err
	}
	s.onClose(vault.Close)
	s.SecretsURL = vault.URL
	if s.Sandbox, err = sandbox.Start(); err != nil {
		return err
	}
	s.onClose(s.Sandbox.Close)
	if err := publishLists(s.Sandbox); err != nil {
		return err
	}
	s.SandboxURL = s.Sandbox.URL
	// The functions know the address before the host exists that serves it.
	if s.lambda, err = net.Listen("tcp", address(0)); err != nil {
		return err
	}
	s.onClose(func() error { _ = s.lambda.Close(); return nil }) // the server may have closed it
	s.LambdaURL = "http://" + s.lambda.Addr().String()

	if _, err := engine.Java(); err != nil { // before the minutes of a first build
		return err
	}
	_, others := split(s.Template.Functions)
	s.unpackBrowser(ctx, options)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return options.phase("DynamoDB Local", func() (string, error) {
			e, err := engine.Start(ctx, engine.Options{Log: options.Log, Progress: options.Progress})
			if err != nil {
				return "", err
			}
			s.onClose(func() error { e.Close(); return nil }) // the other goroutine registers nothing
			s.DynamoDBURL = e.URL
			return "responds", nil
		})
	})
	group.Go(func() (err error) {
		s.binaries, err = options.compile(ctx, "functions", others)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	s.Parameters = s.Overrides()
	maps.Copy(s.Parameters, options.Parameters)
	s.Template, err = template.Load(s.Parameters)
	return err
}

// publishLists publishes the compiled domains in the sandbox: the text files have all of them and one more, and so are
// as fresh as a day's list, and the other files have a few.
func publishLists(s *sandbox.Server) error {
	sources, err := lists.Sources()
	domains := append(slices.Collect(disposable.Compiled().All), "new.disposable.example")
	for _, source := range sources {
		for _, newest := range source.Newest {
			format, address, _ := strings.Cut(newest, ":https://")
			_, path, _ := strings.Cut(address, "/")
			content := strings.Join(domains, "\n")
			if format == "json" {
				content = `["` + strings.Join(domains[:1000], `","`) + `"]`
			}
			s.SetFile("/"+path, []byte(content))
		}
	}
	return err
}

// data creates the tables and the demo projects.
func (s *Stack) data(ctx context.Context, options *Options) error {
	options.Progress("creating tables and demo projects")
	db := engine.Client(s.DynamoDBURL)
	table := map[string]string{}
	for _, t := range s.Template.Tables {
		table[t.LogicalID] = t.Name
	}
	// An engine that another program runs may hold the tables of an earlier stack.
	if err := engine.DropTables(ctx, db, table); err != nil {
		return err
	}
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		return engine.DropTables(ctx, db, table)
	})
	if err := engine.CreateTables(ctx, db, s.Template, nil); err != nil {
		return err
	}
	var err error
	if s.Prices, err = books.Prices(s.Template.Parameters); err != nil {
		return err
	}
	s.Store = admin.NewStore(db, table["Projects"])
	s.Credit = books.NewStore(db, books.Tables{
		Tables:    wallet.Tables{Wallets: table["Wallets"], Ledger: table["Ledger"]},
		Movements: table["Movements"], Resolutions: table["Resolutions"],
	})
	vault := secretsmanager.New(secretsmanager.Options{
		Region: template.Region, BaseEndpoint: &s.SecretsURL, Credentials: db.Options().Credentials,
	})
	s.Projects, err = demo.Create(ctx, demo.Target{
		Projects: s.Store, Credit: s.Credit, Secrets: secret.NewWriter(vault, s.Parameters["Stage"]),
		Rates: rates.NewStore(db, table["Rates"]), Prices: s.Prices, Sandbox: s.SandboxURL,
	})
	return err
}

// serve starts the functions' host, the gateway and the schedules.
func (s *Stack) serve(ctx context.Context, options *Options) error {
	options.Progress("starting the gateway")
	environment := map[string]string{"SVC_LOCAL": "1"}
	if options.Through != nil {
		for variable, url := range map[string]string{
			"AWS_ENDPOINT_URL_DYNAMODB": s.DynamoDBURL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": s.SecretsURL,
			"AWS_ENDPOINT_URL_LAMBDA": s.LambdaURL,
		} {
			var err error
			if environment[variable], err = options.Through(variable, url); err != nil {
				return err
			}
		}
	}
	maps.Copy(environment, options.Environment)
	var err error
	if s.Jail, err = jail.New(ctx, options.Progress); err != nil {
		return err
	}
	host, err := lambda.NewHost(lambda.Options{
		LogDir: s.LogDir, Jail: s.Jail, Concurrency: options.Concurrency, Account: options.Account, Environment: environment,
	})
	if err != nil {
		return err
	}
	s.Host = host
	s.onClose(func() error { host.Close(); return nil })
	pdf, others := split(s.Template.Functions) // with the addresses
	for _, f := range pdf {
		host.Await(f.LogicalID, s.awaitRenderer)
	}
	for _, f := range others {
		if err := host.Add(OnLaptop(f), s.binaries[f.LogicalID]); err != nil {
			return err
		}
	}
	api := &http.Server{Handler: host.API(), ReadHeaderTimeout: 30 * time.Second}
	s.onClose(api.Close)
	go func() { _ = api.Serve(s.lambda) }() // ends by Close
	access, err := s.openLog("gateway.log")
	if err != nil {
		return err
	}
	server, err := gateway.Start(address(options.Port), s.Template, host, access)
	if err != nil {
		return err
	}
	s.onClose(server.Close)
	s.BaseURL, s.DocsURL = server.URL+"/api/v1", server.URL+"/docs"
	s.onClose(schedule(ctx, host, s.Template.Functions, options.Log))
	s.addPDF(ctx, options, pdf)
	return nil
}

// announce writes the demo file, which only this user may read, because the file holds credentials.
func (s *Stack) announce(_ context.Context, options *Options) error {
	if options.DemoFile == "" {
		return nil
	}
	content := struct {
		Addresses
		Prices   map[string]int64        `json:"prices"`
		Projects map[string]demo.Project `json:"projects"`
	}{s.Addresses, s.Prices, map[string]demo.Project{}}
	if root, err := workdir.Root(); err == nil {
		if within, err := filepath.Rel(root, s.LogDir); err == nil && filepath.IsLocal(within) {
			content.LogDir = within
		}
	}
	for _, p := range s.Projects {
		content.Projects[p.Name] = p
	}
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	draft := options.DemoFile + "." + strconv.Itoa(os.Getpid())
	if err = os.WriteFile(draft, text, 0o600); err == nil {
		err = os.Rename(draft, options.DemoFile)
	}
	if err != nil {
		_ = os.Remove(draft)
		return err
	}
	s.onClose(func() error {
		if now, err := os.ReadFile(options.DemoFile); err != nil || !bytes.Equal(now, text) {
			return nil //nolint:nilerr // it is gone, or another stack's by now
		}
		return os.Remove(options.DemoFile)
	})
	return nil
}
