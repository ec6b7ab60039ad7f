package logs

import (
	"context"
	"fmt"
	"time"

	"svcapi/cmd/svc/app"
)

// Browser is the browser that renders a stage's PDFs, as the renderer's newest log line of a start names it.
type Browser struct {
	Version  string `json:"version"`  // as the browser reports it, such as HeadlessChrome/153.0.8010.0
	Released string `json:"released"` // the date that the layer has beside the browser, YYYY-MM-DD; empty where it has none
	Days     int    `json:"days"`     // since that date
}

// oldBrowser is the age in days from which a browser is reported.
const oldBrowser = 60

// StartedBrowser returns the browser of the renderer's newest start in the last 30 days, and nil for none. StartedBrowser
// asks nobody but the stage's log.
func StartedBrowser(ctx context.Context, s *app.Stack) (*Browser, error) {
	f := &Filter{function: "pdfrender", message: "browser started", Last: 30 * 24 * time.Hour, Lines: 1,
		Time: 20 * time.Second}
	found, _, err := f.Search(ctx, s)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	line := found[len(found)-1]
	b := &Browser{Version: line.Field("browser"), Released: line.Field("released")}
	if at, err := time.Parse(time.DateOnly, b.Released); err == nil {
		b.Days = int(time.Since(at).Hours() / 24)
	}
	return b, nil
}

// Age returns when the browser was released.
func (b *Browser) Age() string {
	if b.Released == "" {
		return b.Version + ", of unknown age: no layer of this project"
	}
	return fmt.Sprintf("%s, released %d days ago", b.Version, b.Days)
}

// Old reports that the browser is due. Renew advises what to do about that.
func (b *Browser) Old() bool { return b.Days >= oldBrowser }

// Renew returns the commands that renew a browser, and the one that disables PDFs meanwhile.
func Renew(s *app.Stack) string {
	return "make browser-age names the newest: make browser VERSION=…, then deploy (docs/supply-chain.md, Renew the " +
		"browser). Until then, for documents that you do not trust: " + s.Line("integration disable PROJECT pdf builtin")
}
