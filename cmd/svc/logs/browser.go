package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"svcapi/cmd/svc/app"
)

// Browser is the browser that renders a stage's PDFs, as the renderer's newest log line of a start names it.
type Browser struct {
	Version  string `json:"version"`  // as the browser reports it, such as HeadlessChrome/153.0.8010.0
	Released string `json:"released"` // the date beside the layer's browser, YYYY-MM-DD; empty for none
	Days     int    `json:"days"`     // since that date
}

// oldBrowser is the age in days from which a browser is reported.
const oldBrowser = 60

// StartedBrowser returns the browser of the renderer's newest start in the last 30 days, nil for none. StartedBrowser
// asks nobody but the stage's log.
func StartedBrowser(ctx context.Context, s *app.Stack) (*Browser, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	newest := newestStart
	if s.Local {
		newest = newestLocalStart
	}
	text, err := newest(ctx, s)
	if err != nil || text == "" {
		return nil, err
	}
	l := Line{}
	if err := json.Unmarshal([]byte(text), &l.fields); err != nil {
		return nil, fmt.Errorf("the log line of the browser's start: %w", err)
	}
	b := &Browser{Version: l.Field("browser"), Released: l.Field("released")}
	if at, err := time.Parse(time.DateOnly, b.Released); err == nil {
		b.Days = int(time.Since(at).Hours() / 24)
	}
	return b, nil
}

// started is the message of the line that the renderer logs at each start of a browser.
const started = "browser started"

// newestStart returns the newest line in CloudWatch, and "" for none. The class of the renderer's log group is
// Infrequent Access, which only queries can read (CloudWatch Logs User Guide, Log classes).
func newestStart(ctx context.Context, s *app.Stack) (string, error) {
	group := "/aws/lambda/" + s.StackName() + "-pdfrender"
	rows, err := query(ctx, cloudwatchlogs.NewFromConfig(s.AWS), []string{group}, 30*24*time.Hour,
		fmt.Sprintf("fields @message | filter message = %q | sort @timestamp desc | limit 1", started))
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return aws.ToString(rows[0][0].Value), nil
}

// newestLocalStart returns the newest line of the local stack, and "" for none.
func newestLocalStart(_ context.Context, s *app.Stack) (newest string, err error) {
	content, err := os.ReadFile(filepath.Join(s.LogDir, "pdfrender.log"))
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"message":"`+started+`"`) {
			newest = line
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return newest, err
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
