package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"

	"svcapi/test/must"
)

// window is the size of a window, in pixels.
type window struct {
	name          string
	width, height int
}

// sizes are those of a desk, a tablet and a phone.
var sizes = []window{{"desk", 1440, 900}, {"tablet", 1024, 768}, {"phone", 390, 844}}

// Enter in the dialog keeps what was typed, and does not open the dialog again. On the local stack the playground
// starts with a demo project's credentials.
func TestPageCredentials(t *testing.T) {
	v := docsPage(t, 1366, 768)
	state := func() string { return v.eval(t, `() => document.getElementById("credentials-state").textContent`) }
	if got := state(); got != demoProject("managed").dev.ID {
		t.Errorf("the page begins with %q", got)
	}
	v.click(t, "#open-credentials")
	v.fill(t, "#client-id", demoProject("byok").dev.ID)
	v.fill(t, "#client-secret", demoProject("byok").dev.Secret)
	must.Succeed(t, v.Keyboard.Type(input.Enter))
	v.until(t, "the dialog to close", `() => !document.getElementById("credentials").open`)
	if got := state(); got != demoProject("byok").dev.ID {
		t.Errorf("after Enter: %q", got)
	}
	if open := v.eval(t, `async () => { await new Promise((done) => setTimeout(done, 300)); return `+
		`String(document.getElementById("credentials").open) }`); open != "false" {
		t.Error("Enter opens the dialog again")
	}
	p := v.operation(t, "getSmsBalance")
	if got := v.send(t, p); got != "200 OK" {
		t.Errorf("with what was typed: %s", got)
	}
	v.enter(t, credential{"not-an-id", "not-a-secret"})
	if got := v.send(t, p); !strings.Contains(got, "A Client ID begins with svc_") {
		t.Errorf("with malformed credentials: %s", got)
	}
}

// below is how many pixels an element's top is below the page's bar.
const below = `(id) => Math.round(document.getElementById(id).getBoundingClientRect().top - ` +
	`document.querySelector(".bar").getBoundingClientRect().bottom)`

// A link into the page shows what it names, directly below the bar: from outside, from the list of contents, from the
// search, with and without reduced motion.
func TestPageLinks(t *testing.T) {
	localParallel(t)
	browser := newBrowser(t)
	for _, size := range sizes {
		for _, motion := range []string{"reduce", "no-preference"} {
			t.Run(size.name+" "+motion, func(t *testing.T) {
				v := newTab(t, browser, size.width, size.height)
				media := proto.EmulationSetEmulatedMedia{Features: []*proto.EmulationMediaFeature{{Name: "prefers-reduced-motion",
					Value: motion}}}
				must.Succeed(t, media.Call(v))
				at := func(id, how string) {
					t.Helper()
					v.until(t, id+" "+how, `(id) => { const y = (`+below+`)(id); return y >= 0 && y <= 40 }`, id)
				}
				for _, id := range []string{"/SMS/sendSms", "errors", "/QR%20Code/generateQrCode", "sendSms.bulk_same.recipients",
					"/Currency/getPairRate"} {
					must.Succeed(t, v.Navigate("about:blank"))
					openDocs(t, v, "#"+id)
					at(id, "after loading the page")
				}
				for _, link := range []struct{ selector, id string }{
					{"nav [href='#money']", "money"}, {"nav [data-operation=generatePdf]",
						"/Utilities/generatePdf"}, {"nav [data-operation=sendSms]", "/SMS/sendSms"},
				} {
					for _, again := range []string{"once", "again after scrolling"} {
						if size.width < 600 {
							v.eval(t, `() => { scrollTo(0, 0); return "" }`)
							v.click(t, "#contents summary")
						}
						v.click(t, link.selector)
						at(link.id, again)
						if got := v.eval(t, `() => document.querySelector("nav [aria-current]").getAttribute("href")`); size.width > 600 && got != "#"+link.id {
							v.until(t, "the mark in the contents",
								`(want) => document.querySelector("nav [aria-current]").getAttribute("href") === want`, "#"+link.id)
						}
						v.eval(t, `() => { scrollBy(0, 900); return "" }`)
					}
				}
				v.eval(t, `() => { document.getElementById("/Currency/listCurrencyCodes").scrollIntoView(); return "" }`)
				v.until(t, "the contents to follow",
					`() => document.querySelector("nav [aria-current]")?.dataset.operation === "listCurrencyCodes"`)
				if size.width > 600 {
					v.until(t, "the mark to be visible", `() => {
						const link = document.querySelector("nav [aria-current]").getBoundingClientRect(), nav = document.querySelector("nav").getBoundingClientRect()
						return link.top >= nav.top && link.bottom <= nav.bottom }`)
				}
				v.check(t)
			})
		}
	}
}

// The search finds operations, fields and errors, and leads to them.
func TestPageSearch(t *testing.T) {
	v := docsPage(t, 1366, 768)
	for words, want := range map[string]string{
		"vpn": "/Security/checkVpn", "disposable": "/Security/checkBurnerEmail", "recipients": "sendSms.bulk_same.recipients",
		"qrcode": "/QR%20Code/generateQrCode", "send_confirmation_required": "sendSms.428",
		"check_cost":  "sendSms.bulk_same.check_cost",
		"test values": "values", "clients": "clients",
		"invalid_currency_code 400": "getLatestRates.400",
	} {
		v.fill(t, "#search", words)
		found := v.eval(t, `() => JSON.stringify([...document.querySelectorAll("#results a")].map((a) => `+
			`a.getAttribute("href")))`)
		if !strings.Contains(found, `"#`+want+`"`) {
			t.Errorf("%q finds %s, want %s", words, found, want)
		}
	}
	for words, want := range map[string]string{
		"insufficient_funds": "Too few credits", "timeout": "time-out", "webhook": "no webhooks", "refund": "no refund",
		"python": "Python", "pip": "pip install", "test number": "test numbers",
	} {
		v.fill(t, "#search", words)
		v.eval(t, `() => { document.querySelector("#results a").click(); return "" }`)
		v.until(t, words+" in view", `(want) => {
			const hit = document.querySelector(":target"), y = hit?.getBoundingClientRect().top
			return hit?.textContent.includes(want) && y > 0 && y < innerHeight }`, want)
	}
	v.fill(t, "#search", "prove delivery") // of a description
	v.until(t, "the sentence", `() => document.querySelector("#results .where")?.textContent === "Send SMS"`)
	v.eval(t, `() => { document.getElementById("search").blur(); return "" }`)
	must.Succeed(t, v.Keyboard.Type('/'))
	for _, key := range []input.Key{input.ArrowDown, input.ArrowDown, input.ArrowUp, input.Enter} {
		v.until(t, "the focus in the search", `() => document.activeElement.closest(".search") !== null`)
		must.Succeed(t, v.Keyboard.Type(key))
	}
	v.until(t, "the hit", `() => {
		const hit = document.querySelector(":target"), y = hit?.getBoundingClientRect().top
		return hit?.textContent.includes("does not prove delivery") && y > 0 && y < innerHeight }`)
	must.Succeed(t, v.KeyActions().Press(input.ControlLeft).Type('k').Do())
	v.until(t, "the focus after Ctrl-K", `() => document.activeElement.id === "search"`)
	v.fill(t, "#search", "xyzzy")
	if got := v.eval(t, `() => document.getElementById("found").textContent + document.querySelectorAll("#results `+
		`a").length`); got != "0 results0" {
		t.Error(got)
	}
	v.fill(t, "#search", "margins.top")
	must.Succeed(t, v.Keyboard.Type(input.Enter))
	v.until(t, "the field", `() => { const y = (`+below+`)("generatePdf.margins.top"); return y >= 0 && y <= 40 }`)
}

// An operation shows its fields without a click, its samples and playground beside them or directly below, and what
// most operations share once. No code is cut within a word, no two cells meet, and every sample can be copied.
func TestPageLayout(t *testing.T) {
	localParallel(t)
	browser := newBrowser(t)
	for _, size := range append(slices.Clip(sizes), window{"laptop", 1280, 900}) {
		t.Run(size.name, func(t *testing.T) {
			v := newTab(t, browser, size.width, size.height)
			openDocs(t, v, "")
			for what, script := range map[string]string{
				"fields": `() => ["sendSms.bulk_same.recipients", "generateBarcode.width_factor", "convertPairRate.amount"]
					.filter((id) => !(document.getElementById(id)?.offsetHeight > 0)).join()`,
				"rule": `() => document.getElementById("generateBarcode.width_factor").textContent.replace(/\s+/g, " ` +
					`").includes("1 to 4") ? "" : document.getElementById("generateBarcode.width_factor").textContent`,
				"places": fmt.Sprintf(`() => (scrollTo(0, 0), 0) || [...document.querySelectorAll(".operation")].filter((o) => {
					const order = [".head", ".about", ".samples", ".playground", ".response", ".outcome"].map((s) => o.querySelector(s))
					const follows = (e, i) => i === 0 || order[i - 1].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING
					if (!order.every(follows)) return true
					const [head, about, samples, play, response, outcome] = order.map((e) => e.getBoundingClientRect())
					return head.bottom > about.top || samples.bottom > play.top || (%d >= 1200
						? samples.left < about.right || samples.top > about.top + 40 || play.left < about.right || play.top - head.top > 800 || outcome.top < about.bottom
						: about.bottom > samples.top || play.bottom > outcome.top)
				}).map((o) => o.id).join()`, size.width),
				"order": `() => [...document.querySelectorAll(".operation *")].filter((e) => getComputedStyle(e).order !== ` +
					`"0").length || ""`,
				"overlaps": `() => [...document.querySelectorAll(".operation")].filter((o) => {
					o.querySelector(".playground").scrollIntoView({ behavior: "instant" })
					const [play, sample] = [".playground", ".samples pre"].map((s) => o.querySelector(s).getBoundingClientRect())
					return sample.bottom > play.top && sample.top < play.bottom
				}).map((o) => o.id).join()`,
				"lines": `() => [...document.querySelectorAll("main pre")].filter((pre) => {
					const range = document.createRange()
					range.selectNodeContents(pre)
					const lines = pre.textContent.trimEnd().split("\n").length, height = parseFloat(getComputedStyle(pre.firstChild).lineHeight) || parseFloat(getComputedStyle(pre).lineHeight)
					return pre.offsetHeight > 0 && pre.scrollHeight < lines * height * 0.9
				}).map((pre) => pre.textContent).join()`,
				"first sentences": `() => [...document.querySelectorAll(".about > p:first-child")].filter((p) => /^(The same ` +
					`request|The document is untrusted|Success means)/.test(p.textContent)).map((p) => p.textContent).join()`,
				"rules": `() => [...document.querySelectorAll(".pattern")].filter((p) => ` +
					`p.nextSibling?.textContent.trim()).map((p) => p.textContent).join()`,
				"reasons": `() => document.getElementById("sendSms.422")?.cells[1].textContent.includes("message_too_long") && ` +
					`document.querySelector(".reasons td") ? "" : "no reasons"`,
				"links": `() => ["#retries", "docs/changelog.txt"].filter((href) => !document.querySelector("nav ` +
					`[href='" + href + "']")).join()`,
				"shared errors": `() => [...document.querySelectorAll("#reference tr[id] td:nth-child(2)")].filter((c) => ` +
					`/^\s*(unauthorized|rate_limit_exceeded|internal_error)\s*$/.test(c.textContent)).map((c) => ` +
					`c.parentElement.id).join()`,
				"copy buttons": `() => [...document.querySelectorAll("main pre")].filter((pre) => ![...pre.closest(".sample, ` +
					`.samples").querySelectorAll("button")].some((b) => b.textContent === "Copy")).map((pre) => ` +
					`pre.textContent).join()`,
				"cut codes": `() => {
					const cut = []
					for (const code of document.querySelectorAll("td code, p code")) for (const part of code.childNodes) {
						const text = part.firstChild ?? part
						if (text.nodeType !== Node.TEXT_NODE || /\s/.test(text.data.trim())) continue
						const range = document.createRange()
						range.selectNodeContents(text)
						if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) cut.push(text.data)
					}
					return cut.join() }`,
				"cells": `() => {
					const meet = []
					for (const row of document.querySelectorAll("main tr")) for (let i = 0; i + 1 < row.cells.length; i++) {
						const range = document.createRange()
						range.selectNodeContents(row.cells[i])
						const [left, right] = [range.getBoundingClientRect(), row.cells[i + 1].getBoundingClientRect()]
						if (left.width > 0 && right.top < left.bottom && left.right > right.left + 1) meet.push(row.textContent)
					}
					return meet.join() }`,
				"opened": fmt.Sprintf(`() => {
					const wide = [...document.querySelectorAll("main details")].filter((d) => {
						d.open = true
						const wider = document.documentElement.scrollWidth > %d
						d.open = false
						return wider
					})
					return wide.map((d) => d.textContent.slice(0, 60)).join() }`, size.width),
				"width": fmt.Sprintf(`() => document.documentElement.scrollWidth <= %d ? "" : "wider than the window"`, size.width),
				"weight": `() => {
					const sum = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((n, e) => n + e.encodedBodySize, 0)
					return sum > 20_000 && sum <= 65_000 ? "" : sum + " bytes" }`,
			} {
				if got := v.eval(t, script); got != "" {
					t.Errorf("%s: %s", what, got)
				}
			}
			v.check(t)
		})
	}
}

// One choice of a language is for all samples, and is remembered; the samples have the credentials that were entered.
func TestPageSamples(t *testing.T) {
	v := docsPage(t, 1440, 900)
	const selected = `() => [...new Set([...document.querySelectorAll(".samples ` +
		`[role=tab][aria-selected=true]")].map((tab) => tab.textContent))].join()`
	if got := v.eval(t, selected); got != "curl" {
		t.Errorf("the page begins with %q", got)
	}
	v.eval(t, `() => { [...document.querySelectorAll(".samples [role=tab]")].find((tab) => tab.textContent === `+
		`"Python").click(); return "" }`)
	if got := v.eval(t, selected); got != "Python" {
		t.Errorf("the samples are in %q", got)
	}
	openDocs(t, v, "")
	if got := v.eval(t, selected); got != "Python" {
		t.Errorf("after loading again the samples are in %q", got)
	}
	v.enter(t, credential{"svc_mine_development", "svcs_my-secret"})
	if got := v.eval(t, `() => [...document.querySelectorAll(".samples code")].filter((c) => `+
		`!/svc_mine_development[^]*svcs_my-secret/.test(c.textContent)).length`); got != "0" {
		t.Errorf("%s samples without the credentials", got)
	}
}
