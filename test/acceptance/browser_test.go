package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/go-rod/rod/lib/proto"
	"golang.org/x/sync/semaphore"

	"svcapi/local/chromium"
	"svcapi/test/must"
)

// tab is a page of the browser that records its requests and its errors.
type tab struct {
	*rod.Page

	mu         sync.Mutex
	complaints []string            // errors and warnings on the console
	asked      []string            // every URL
	sent       []map[string]string // the headers of each request to the API, by lower-case name
}

// browser is the project's Chromium. The first test that needs the browser starts it, and close ends it.
type browser struct {
	once sync.Once
	held *semaphore.Weighted // by the tests with open pages: more than two would wait for one another's processor time
	end  func()
	rod  *rod.Browser
	err  error
}

// newBrowser returns a browser without cookies and storage for one test, whose pages are closed with the test.
func newBrowser(t *testing.T) *rod.Browser {
	t.Helper()
	b := &fixture.browser
	must.Succeed(t, b.held.Acquire(t.Context(), 1))
	t.Cleanup(func() { b.held.Release(1) })
	b.once.Do(func() { b.rod, b.end, b.err = startBrowser(filepath.Join(fixture.dir, "browser")) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	own := must.Get(b.rod.Incognito()).Or(t)
	t.Cleanup(func() { must.Succeed(t, own.Close()) }) // of its context alone
	return own
}

func startBrowser(home string) (*rod.Browser, func(), error) {
	path, err := chromium.Path(context.Background(), func(string) {})
	if err != nil {
		return nil, nil, err
	}
	env := append(os.Environ(), "HOME="+home)
	fonts := filepath.Join(filepath.Dir(path), "fonts.conf")
	if _, err := os.Stat(fonts); err == nil { // the layer's own fonts and libraries
		env = append(env, "FONTCONFIG_FILE="+fonts, "LD_LIBRARY_PATH="+filepath.Join(filepath.Dir(path), "lib"))
	}
	start := launcher.New().Bin(path).Leakless(false).NoSandbox(true).Headless(true).UserDataDir(home).
		Set("disable-gpu").Set("disable-dev-shm-usage").Env(env...)
	address, err := start.Launch()
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		start.Kill()
		start.Cleanup() // returns when the profile folder is removed
	}
	b := rod.New().ControlURL(address).NoDefaultDevice()
	if err := b.Connect(); err != nil {
		end()
		return nil, nil, err
	}
	return b, end, nil
}

// newTab opens an empty page of a size.
func newTab(t *testing.T, browser *rod.Browser, width, height int) *tab {
	t.Helper()
	page := must.Get(browser.Page(proto.TargetCreateTarget{URL: "about:blank"})).Or(t).Timeout(4 * time.Minute)
	v := &tab{Page: page}
	for _, enable := range []proto.Request{proto.NetworkEnable{}, proto.LogEnable{}, proto.RuntimeEnable{}} {
		must.Get(page.Call(page.GetContext(), string(page.SessionID), enable.ProtoReq(), enable)).Or(t)
	}
	must.Succeed(t, page.SetViewport(&proto.EmulationSetDeviceMetricsOverride{Width: width, Height: height,
		DeviceScaleFactor: 1, Mobile: width < 600}))
	v.look(t, "light")
	go page.EachEvent(
		func(e *proto.RuntimeConsoleAPICalled) {
			if e.Type == proto.RuntimeConsoleAPICalledTypeError || e.Type == proto.RuntimeConsoleAPICalledTypeWarning {
				v.complain("console: " + describe(e.Args))
			}
		},
		func(e *proto.RuntimeExceptionThrown) {
			v.complain("exception: " + e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
		},
		func(e *proto.LogEntryAdded) {
			// That a request was refused is what some of the tests want to see.
			if e.Entry.Source != proto.LogLogEntrySourceNetwork && e.Entry.Level != proto.LogLogEntryLevelVerbose {
				v.complain(string(e.Entry.Level) + ": " + e.Entry.Text)
			}
		},
		func(e *proto.NetworkRequestWillBeSent) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.asked = append(v.asked, e.Request.URL)
			if strings.HasPrefix(e.Request.URL, fixture.baseURL+"/") {
				headers := map[string]string{}
				for name, value := range e.Request.Headers {
					headers[strings.ToLower(name)] = value.Str()
				}
				v.sent = append(v.sent, headers)
			}
		},
	)()
	return v
}

// look sets the system's colours. Nothing moves: a test would click where something was.
func (v *tab) look(t *testing.T, scheme string) {
	t.Helper()
	media := proto.EmulationSetEmulatedMedia{Features: []*proto.EmulationMediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}
	must.Succeed(t, media.Call(v))
}

func describe(arguments []*proto.RuntimeRemoteObject) string {
	var words []string
	for _, a := range arguments {
		words = append(words, a.Value.String(), a.Description)
	}
	return strings.Join(words, " ")
}

func (v *tab) complain(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.complaints = append(v.complaints, what)
}

// requests are the headers of the requests to the API so far.
func (v *tab) requests() []map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.sent)
}

// check reports the page's errors and its requests to other hosts than the stack.
func (v *tab) check(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.complaints {
		t.Error(c)
	}
	own := strings.TrimSuffix(fixture.baseURL, "/api/v1") + "/"
	permitted := []string{own, "blob:" + own, "data:", "chrome-extension:"} // the last is a browser's own PDF viewer
	for _, u := range v.asked {
		if !slices.ContainsFunc(permitted, func(prefix string) bool { return strings.HasPrefix(u, prefix) }) {
			t.Errorf("the page asked %s", u)
		}
	}
}

// eval runs a function in the page and returns what it returns.
func (v *tab) eval(t *testing.T, function string, arguments ...any) string {
	t.Helper()
	result, err := v.Eval(function, arguments...)
	if err != nil {
		t.Fatalf("%.80s: %v", function, err)
	}
	return result.Value.Str()
}

// until waits for a condition in the page.
func (v *tab) until(t *testing.T, what, condition string, arguments ...any) {
	t.Helper()
	if err := v.Timeout(45 * time.Second).Wait(rod.Eval(condition, arguments...)); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// click clicks on the element that a selector names, as a pointer does.
func (v *tab) click(t *testing.T, selector string) {
	t.Helper()
	e, err := v.Timeout(time.Minute).Element(selector)
	if err == nil {
		err = e.WaitStable(50 * time.Millisecond)
	}
	if err == nil {
		err = e.Click(proto.InputMouseButtonLeft, 1)
	}
	if err != nil {
		t.Fatalf("click on %s: %v", selector, err)
	}
}

// fill replaces the text of a field.
func (v *tab) fill(t *testing.T, selector, text string) {
	t.Helper()
	e, err := v.Timeout(time.Minute).Element(selector)
	if err == nil {
		err = e.SelectAllText()
	}
	if err == nil {
		err = e.Input(text)
	}
	if err != nil {
		t.Fatalf("fill %s: %v", selector, err)
	}
}

// download follows a link that saves a file, and returns what was saved.
func (v *tab) download(t *testing.T, selector string) string {
	t.Helper()
	dir := t.TempDir()
	wait := v.Browser().WaitDownload(dir)
	v.click(t, selector)
	info := wait()
	return readFile(t, filepath.Join(dir, info.GUID))
}
