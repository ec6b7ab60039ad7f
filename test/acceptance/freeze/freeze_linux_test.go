// Package freeze tests a compiled function that Lambda freezes for an hour, during which the wall time moves and the
// monotonic clock stops.
package freeze

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"

	"svcapi/local/build"
	"svcapi/local/jail"
	"svcapi/local/lambda"
	"svcapi/local/template"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// aheadVariable names the file that holds the seconds by which a function's wall time is ahead.
const aheadVariable = "WALL_CLOCK_AHEAD"

// ahead is a file more of package time. Timers read the clock inside the runtime, where an ordinary system call is fatal.
const ahead = `package time

import (
	"syscall"
	"unsafe"
)

var wallClockFile = func() []byte {
	path, _ := syscall.Getenv("` + aheadVariable + `")
	return append([]byte(path), 0)
}()

func wallClockAhead() (seconds int64) {
	if len(wallClockFile) == 0 { // this package is not initialised
		return 0
	}
	workingDirectory := -100 // AT_FDCWD
	file, _, failed := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(workingDirectory), uintptr(unsafe.Pointer(&wallClockFile[0])), syscall.O_RDONLY, 0, 0, 0)
	if failed != 0 {
		return 0
	}
	digits := make([]byte, 20)
	n, _, _ := syscall.RawSyscall(syscall.SYS_READ, file, uintptr(unsafe.Pointer(&digits[0])), uintptr(len(digits)))
	syscall.RawSyscall(syscall.SYS_CLOSE, file, 0, 0)
	for _, digit := range digits[:min(int(n), len(digits))] {
		if '0' <= digit && digit <= '9' {
			seconds = seconds*10 + int64(digit-'0')
		}
	}
	return seconds
}
`

// overlay makes the go command compile another time.Now, which no product code knows of. It moves the wall time of every
// reading of the clock and leaves the monotonic one.
func overlay(t *testing.T) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original := filepath.Join(folder, "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reading) != 1 {
		t.Fatalf("%s reads the clock in another way than this test knows", original)
	}
	dir, replace := t.TempDir(), map[string]string{}
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	replace[original] = write("time.go", strings.Replace(string(text), reading, reading+"\tsec += wallClockAhead()\n", 1))
	replace[filepath.Join(folder, "ahead.go")] = write("ahead.go", ahead)
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+write("overlay.json", string(list))))
}

// instance is the one process of the function barcode, on tables of its own.
type instance struct {
	host     *lambda.Host
	ahead    string // the file that moves its wall time
	logs     string
	projects *project.Store
}

func start(t *testing.T) *instance {
	t.Helper()
	ctx := t.Context()
	root, err := workdir.Root()
	if err != nil {
		t.Fatal(err)
	}
	db, tables := enginetest.Client(t)
	model, err := template.Load(filepath.Join(root, "template.yaml"), map[string]string{"DynamoDbEndpointUrl": enginetest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{ahead: filepath.Join(t.TempDir(), "seconds"), logs: t.TempDir(), projects: project.NewStore(db, tables.Projects)}
	i.move(t, "0")
	overlay(t)
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := build.Packages(ctx, root, binary, "./functions/barcode"); err != nil {
		t.Fatal(err)
	}
	confined, err := jail.New(ctx, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	options := lambda.Options{LogDir: i.logs, Concurrency: 1, Environment: map[string]string{"SVC_LOCAL": "1"}, Jail: confined}
	if i.host, err = lambda.NewHost(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.host.Close)
	function, _ := model.Function("barcode")
	function.Timeout += 2 * time.Hour // the host's clock does not move: its deadlines would have passed
	maps.Copy(function.Environment, map[string]string{
		"PROJECTS_TABLE": tables.Projects, "TRANSIENT_TABLE": tables.Transient,
		aheadVariable: i.ahead, "WALLETS_TABLE": tables.Wallets, "LEDGER_TABLE": tables.Ledger,
	})
	if err := i.host.Add(function, binary); err != nil {
		t.Fatal(err)
	}
	return i
}

// move moves the instance's wall time while it is frozen.
func (i *instance) move(t *testing.T, by string) {
	t.Helper()
	if err := os.WriteFile(i.ahead, []byte(by), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (i *instance) call(t *testing.T, client, secret string) int {
	t.Helper()
	event, err := json.Marshal(events.APIGatewayProxyRequest{
		HTTPMethod: "POST", Path: "/api/v1/utilities/barcode/generate", Body: `{"data":"SVC"}`,
		Headers:        map[string]string{"X-API-KEY": client, "X-API-SECRET": secret, "Content-Type": "application/json"},
		RequestContext: events.APIGatewayProxyRequestContext{RequestID: uuid.NewString()},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := i.host.Invoke(context.Background(), "BarcodeFunction", event)
	if err != nil || result.FunctionError != "" {
		log, _ := os.ReadFile(filepath.Join(i.logs, "barcode.log"))
		t.Fatalf("%v %s\n%s", err, result.Payload, log)
	}
	var response events.APIGatewayProxyResponse
	if err := json.Unmarshal(result.Payload, &response); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// TestThaw: what was revoked or paused while an instance was frozen for an hour holds at the first request afterwards,
// and what was not still works.
func TestThaw(t *testing.T) {
	i := start(t)
	ctx := t.Context()
	issue := func(id string) (client, secret string) {
		t.Helper()
		_, err := i.projects.CreateProject(ctx, project.Project{ID: id, Name: id, Limit: project.RateLimit{Requests: 100, Window: time.Minute}})
		if err == nil {
			err = i.projects.PutIntegration(ctx, id, project.Integration{
				Kind: project.Barcode, Environment: project.Development, Vendor: "builtin", Mode: project.BYOK, Active: true,
			})
		}
		if err == nil {
			client, secret, err = i.projects.IssueCredential(ctx, id, project.Development)
		}
		if err != nil {
			t.Fatal(err)
		}
		return client, secret
	}
	type thawed struct {
		change func(project, client string) error
		status int
	}
	cases := map[string]thawed{
		"unchanged": {func(string, string) error { return nil }, 200},
		"revoked":   {func(_, client string) error { return i.projects.RevokeCredential(ctx, client) }, 401},
		"paused": {func(id, _ string) error {
			_, err := i.projects.SetPaused(ctx, id, true)
			return err
		}, 503},
	}
	credentials := map[string][2]string{}
	for id := range cases {
		client, secret := issue(id)
		credentials[id] = [2]string{client, secret}
		if status := i.call(t, client, secret); status != 200 {
			t.Fatalf("%s, before the freeze: %d", id, status)
		}
	}
	before := i.host.Processes("BarcodeFunction")
	for id, c := range cases {
		if err := c.change(id, credentials[id][0]); err != nil {
			t.Fatal(err)
		}
	}
	i.move(t, "3600")
	for id, c := range cases {
		if status := i.call(t, credentials[id][0], credentials[id][1]); status != c.status {
			t.Errorf("%s, after the freeze: %d, want %d", id, status, c.status)
		}
	}
	if after := i.host.Processes("BarcodeFunction"); len(before) != 1 || len(after) != 1 || before[0] != after[0] {
		t.Errorf("processes %v, then %v: the test wants one and the same", before, after)
	}
}
