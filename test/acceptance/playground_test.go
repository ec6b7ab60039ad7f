package acceptance

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"

	"svcapi/functions/sms/units"
	"svcapi/local/workdir"
	"svcapi/shared/project"
	"svcapi/test/must"
)

// openDocs loads the documentation page.
func openDocs(t *testing.T, v *tab, fragment string) {
	t.Helper()
	must.Succeed(t, v.Navigate(docsURL()+fragment))
	v.until(t, "the reference", `() => document.body?.dataset.ready === "true"`)
}

// docsPage opens the documentation page for a test of a local stack that runs beside others. The page must end without
// an error.
func docsPage(t *testing.T, width, height int) *tab {
	t.Helper()
	localParallel(t)
	v := newTab(t, newBrowser(t), width, height)
	openDocs(t, v, "")
	t.Cleanup(func() { v.check(t) })
	return v
}

// enter types credentials into the page.
func (v *tab) enter(t *testing.T, c credential) {
	t.Helper()
	v.click(t, "#open-credentials")
	v.fill(t, "#client-id", c.ID)
	v.fill(t, "#client-secret", c.Secret)
	v.click(t, "#credentials [data-accept]")
}

// operation opens an operation from the list of contents and returns the selector of its playground.
func (v *tab) operation(t *testing.T, id string) string {
	t.Helper()
	v.click(t, fmt.Sprintf("nav [data-operation=%s]", id))
	return fmt.Sprintf(".operation[id$='/%s'] .playground", id)
}

// settled waits for a response, or for the sentence that replaces a response.
func (v *tab) settled(t *testing.T, playground string) string {
	t.Helper()
	v.until(t, "a response", `selector => {
		const text = document.querySelector(selector + " .status").textContent
		return text !== "" && text !== "Sending…" && document.querySelector(selector + " .send").ariaDisabled !== "true"
	}`, playground)
	return v.eval(t, `selector => document.querySelector(selector + " .status").textContent`, playground)
}

// press presses Send.
func (v *tab) press(t *testing.T, playground string) {
	t.Helper()
	v.eval(t, `selector => { document.querySelector(selector + " .status").textContent = ""; return "" }`, playground)
	v.click(t, playground+" .send")
}

// send presses Send and waits.
func (v *tab) send(t *testing.T, playground string) string {
	t.Helper()
	v.press(t, playground)
	return v.settled(t, playground)
}

// body replaces the request's body.
func (v *tab) body(t *testing.T, playground, text string) {
	t.Helper()
	v.fill(t, playground+" textarea", text)
}

// docs/decisions/operating.md#documentation-page: the page loads with no console error and no request to another host,
// takes credentials, makes a barcode, a PDF, a currency request. docs/decisions/requests.md#playground: an SMS is not
// sent without the confirmation and is with it.
func TestPlayground(t *testing.T) {
	v := docsPage(t, 1280, 900)
	if n := v.eval(t, `() => String(document.querySelectorAll("#reference .operation").length)`); n != fmt.Sprint(fixture.spec.Paths.Len()) {
		t.Errorf("the page has %s operations, openapi.yaml %d", n, fixture.spec.Paths.Len())
	}
	v.enter(t, demoProject("managed").dev)

	t.Run("pictures", func(t *testing.T) {
		for _, id := range []string{"generateBarcode", "generateQrCode"} {
			p := v.operation(t, id)
			if got := v.send(t, p); got != "200 OK" {
				t.Fatalf("%s: %s", id, got)
			}
			v.until(t, "the picture", `selector => document.querySelector(selector + " .response img")?.naturalWidth > 50`, p)
			facts := v.eval(t, `selector => document.querySelector(selector + " .response dl").textContent`, p)
			if !strings.Contains(facts, " ms") || !strings.Contains(facts, "Request ID") ||
				!strings.Contains(facts, "100 on a Managed integration") {
				t.Errorf("%s: %s", id, facts)
			}
		}
	})

	t.Run("pdf", func(t *testing.T) {
		p := v.operation(t, "generatePdf")
		v.body(t, p, `{"html":"<h1>Invoice</h1><script>1</script>","response_type":"binary"}`) // the page asks for Base64 all the same
		if got := v.send(t, p); got != "200 OK" {
			t.Fatal(got)
		}
		v.until(t, "the PDF", `selector => !!document.querySelector(selector + " .response a.download")`, p)
		shown := v.eval(t, `selector => document.querySelector(selector + " .response").textContent`, p)
		if !strings.Contains(shown, `"media_type": "application/pdf"`) || !strings.Contains(shown, `"JVBERi`) ||
			!strings.Contains(shown, "scripts-ignored") {
			t.Errorf("shown: %s", shown)
		}
		if inline := v.eval(t, `selector => String(navigator.pdfViewerEnabled === !!document.querySelector(selector + " `+
			`.response iframe[src^=blob]"))`, p); inline != "true" {
			t.Error("a browser that can show the PDF in the page does not")
		}
		if kind := v.download(t, p+" .response a.download"); !strings.HasPrefix(kind, "%PDF-") {
			t.Errorf("downloaded: %.20q", kind)
		}
	})

	t.Run("currency", func(t *testing.T) {
		p := v.operation(t, "convertPairRate")
		if got := v.send(t, p); got != "200 OK" {
			t.Fatal(got)
		}
		shown := v.eval(t, `selector => document.querySelector(selector + " .response").textContent`, p)
		if !strings.Contains(shown, `"conversion_result"`) || !strings.Contains(shown, "Credits0") {
			t.Errorf("shown: %s", shown)
		}
	})

	t.Run("sms", func(t *testing.T) {
		to := number()
		p := v.operation(t, "sendSms")
		v.body(t, p, single(to, "Hello [€]"))
		v.press(t, p)
		v.until(t, "the question", `() => document.getElementById("confirmation").open`)
		question := v.eval(t, `() => document.getElementById("confirmation").textContent`)
		if !strings.Contains(question, "1: "+to) || !strings.Contains(question, "The sandbox of this machine") ||
			!strings.Contains(question, "10,000 credits") {
			t.Errorf("the question: %s", question)
		}
		v.click(t, "#confirmation [data-cancel]")
		if got := v.settled(t, p); got != "Not sent." || len(sent(to)) != 0 {
			t.Errorf("refused: %s, the vendor got %v", got, sent(to))
		}
		v.press(t, p)
		v.until(t, "the question", `() => document.getElementById("confirmation").open`)
		v.click(t, "#confirmation [data-accept]")
		if got := v.settled(t, p); got != "200 OK" || len(sent(to)) != 1 {
			t.Errorf("confirmed: %s, the vendor got %v", got, sent(to))
		}
		if facts := v.eval(t, `selector => document.querySelector(selector + " .response dl").textContent`,
			p); !strings.Contains(facts, "Credits10,000") {
			t.Errorf("the facts: %s", facts)
		}
		// A body that is no send of anything is not asked about and not confirmed.
		v.body(t, p, `{"send_method":"single"}`)
		if got := v.send(t, p); !strings.HasPrefix(got, "422") {
			t.Errorf("incomplete: %s", got)
		}
		for i, headers := range v.requests() {
			if headers["x-env"] != "development" || headers["x-svc-client"] != "playground" {
				t.Errorf("request %d is not marked: %v", i, headers)
			}
		}
		confirmed := 0
		for _, headers := range v.requests() {
			if headers["x-confirm-send"] != "" {
				confirmed++
			}
		}
		if confirmed != 1 {
			t.Errorf("%d requests were confirmed, want 1", confirmed)
		}
	})

	t.Run("production credentials", func(t *testing.T) {
		v.enter(t, demoProject("managed").prod)
		p := v.operation(t, "getSmsBalance")
		if got := v.send(t, p); !strings.HasPrefix(got,
			"401 Unauthorized. The credentials are missing, invalid or inactive") ||
			!strings.HasSuffix(got, " Only development credentials work here.") {
			t.Error(got)
		}
	})

	t.Run("nothing is kept", func(t *testing.T) {
		stored := v.eval(t, `() => JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])`)
		if strings.Contains(stored, "svc_") || strings.Contains(stored, "svcs_") {
			t.Errorf("credentials are stored: %s", stored)
		}
		openDocs(t, v, "?again")
		if state := v.eval(t, `() => document.getElementById("credentials-state").textContent`); state != demoProject("managed").dev.ID {
			t.Errorf("after a reload: %s", state)
		}
	})
}

// openapi.yaml#InsufficientFunds: the playground shows why a limit refused a request.
func TestPlaygroundShowsRefusals(t *testing.T) {
	v := docsPage(t, 1280, 900)
	p := plan{credits: 1_000_000}.make(t).drawing(t, project.Managed)
	svc[any](t, "", "project", "limits", p.id, "--daily-credits", "50")
	v.enter(t, p.dev)
	playground := v.operation(t, "generateBarcode")
	got := v.send(t, playground)
	shown := v.eval(t, `selector => document.querySelector(selector + " dl").textContent`, playground)
	if !strings.HasPrefix(got, "402") ||
		!strings.Contains(shown, "the project's daily limit of 50 credits, which ends at ") ||
		!strings.Contains(shown, "details.limit50") {
		t.Errorf("%s: %s", got, shown)
	}
}

// docs/decisions/sms.md#units: the page counts as the API does, so that the question names the right price.
func TestPlaygroundCountsUnits(t *testing.T) {
	v := docsPage(t, 800, 600)
	var texts []string
	for _, c := range []string{"a", "€", "[", "ü", "ç", "\U0001f600", "\n", "Ω", "ක"} {
		for _, n := range []int{1, 33, 34, 66, 67, 68, 76, 77, 152, 153, 154, 306, 307, 459, 460} {
			texts = append(texts, strings.Repeat(c, n), strings.Repeat("a", n)+c)
		}
	}
	script := strings.TrimSuffix(v.eval(t, `() => document.querySelector("script[type=module]").src`), "page.js") +
		"units.js"
	result, err := v.Eval(`async (url, texts) => { const { units } = await import(url); return texts.map(units) }`, script,
		texts)
	must.Succeed(t, err)
	for i, got := range result.Value.Arr() {
		if want, _ := units.Count(texts[i]); got.Int() != want {
			t.Errorf("%q: the page counts %d units, the API %d", texts[i], got.Int(), want)
		}
	}
}

// docs/decisions/operating.md#documentation-page: light and dark, keyboard, screen reader, phone width; axe-core finds
// nothing.
func TestPageIsAccessible(t *testing.T) {
	localParallel(t)
	modules := must.Get(workdir.Installed(t.Context(), "npm", "node_modules")).Or(t)
	axe := readFile(t, filepath.Join(modules, "axe-core", "axe.min.js"))
	browser := newBrowser(t)
	for _, c := range []struct {
		name          string
		width, height int
		scheme        string
	}{
		{"light", 1440, 900, "light"}, {"dark", 1440, 900, "dark"}, {"tablet", 1024, 768,
			"light"}, {"dark tablet", 1024, 768, "dark"},
		{"phone", 390, 844, "light"}, {"dark phone", 390, 844, "dark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newTab(t, browser, c.width, c.height)
			v.look(t, c.scheme)
			openDocs(t, v, "")
			if dark := v.eval(t, `() => String(document.documentElement.classList.contains("dark-mode"))`); dark != fmt.Sprint(c.scheme == "dark") {
				t.Errorf("dark: %s", dark)
			}
			if c.width < 600 {
				v.click(t, "#contents summary")
			}
			v.operation(t, "sendSms")
			v.axe(t, axe, ":root")
			v.click(t, "#open-credentials")
			v.axe(t, axe, "#credentials") // all else is as before, and inert
			v.check(t)
		})
	}
}

// axe runs axe-core over an element of the page as it is.
func (v *tab) axe(t *testing.T, source, selector string) {
	t.Helper()
	must.Get(proto.RuntimeEvaluate{Expression: source}.Call(v)).Or(t) // the page's policy forbids no debugger
	found := v.eval(t, `async (selector) => JSON.stringify((await axe.run(selector)).violations
		.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.slice(0, 6).map((n) => n.html.slice(0, 200) + " " + n.failureSummary) })))`, selector)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	must.Succeed(t, json.Unmarshal([]byte(found), &violations))
	for _, a := range violations {
		t.Errorf("%s: %s: %s\n  %s", selector, a.ID, a.Help, strings.Join(a.Nodes, "\n  "))
	}
}

// docs/decisions/operating.md#documentation-page: everything can be reached and worked without a pointer.
func TestPageByKeyboard(t *testing.T) {
	v := docsPage(t, 1280, 900)
	press := func(keys ...input.Key) {
		t.Helper()
		for _, key := range keys {
			must.Succeed(t, v.Keyboard.Type(key))
		}
	}
	focused := func() string {
		return v.eval(t, `() => document.activeElement.id || document.activeElement.className || `+
			`document.activeElement.textContent`)
	}
	press(input.Tab)
	if got := focused(); got != "skip" {
		t.Errorf("the first stop is %q", got)
	}
	press(input.Enter)
	v.until(t, "the skip link's target", `() => document.activeElement.id === "main"`)
	v.eval(t, `() => { document.querySelector("nav [data-operation=getSmsBalance]").focus(); return "" }`)
	press(input.Enter)
	v.until(t, "the operation", `() => !!document.querySelector(".operation[id$=getSmsBalance] .playground .send")`)
	v.eval(t, `() => { document.querySelector(".operation[id$=getSmsBalance] .samples [role=tab]").focus(); return "" }`)
	press(input.ArrowRight, input.ArrowRight)
	code := v.eval(t, `() => document.activeElement.textContent + document.querySelector(".operation[id$=getSmsBalance] `+
		`.samples [role=tabpanel]").textContent`)
	if !strings.HasPrefix(code, "Python") || !strings.Contains(code, "import requests") ||
		!strings.Contains(code, fixture.baseURL) {
		t.Errorf("two steps to the right: %s", code)
	}
	v.click(t, "#open-credentials") // those of the demo project
	v.click(t, "#credentials [data-forget]")
	v.eval(t, `() => { document.querySelector(".operation[id$=getSmsBalance] .send").focus(); return "" }`)
	press(input.Enter)
	v.until(t, "the credentials", `() => document.getElementById("credentials").open`)
	press(input.Escape)
	v.until(t, "the sentence", `() => document.querySelector(".operation[id$=getSmsBalance] .status").textContent === `+
		`"Enter development credentials to send a request."`)
	v.until(t, "the focus to come back", `() => document.activeElement.classList.contains("send")`)
}
