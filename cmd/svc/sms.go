package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/cmd/svc/app"
	"svcapi/cmd/svc/catalog"
	"svcapi/functions/sms/uncertain"
	"svcapi/functions/sms/units"
	"svcapi/functions/sms/vendors"
	"svcapi/shared/books"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/telemetry"
	"svcapi/shared/upstream"
	"svcapi/shared/wallet"
)

// uncertainSMS is an uncertain charge in the format for programs.
type uncertainSMS struct {
	ProjectID string `json:"project_id"`
	books.Entry
}

func listUncertain(a *app.App) *cobra.Command {
	var projectID string // empty for all projects
	var resolved bool
	cmd := a.Command("list [PROJECT]", app.Bind(&projectID), func(ctx context.Context, s *app.Stack) error {
		projects, err := s.ListProjects(ctx, projectID)
		if err != nil {
			return err
		}
		var all []uncertainSMS
		for _, p := range projects {
			entries, err := s.Credits.Uncertain(ctx, p.ID)
			if err == nil && resolved {
				var more []books.Entry
				more, err = s.Credits.Resolved(ctx, p.ID)
				entries = append(entries, more...)
			}
			if err != nil {
				return err
			}
			for _, e := range entries {
				all = append(all, uncertainSMS{p.ID, e})
			}
		}
		const header = "PROJECT, ID, TIME, CREDITS, USD, ENVIRONMENT, VENDOR, REQUEST, RESOLUTION, REFERENCE"
		return app.PrintList(s.App, header, "No SMS is uncertain.", all, func(v uncertainSMS) []string {
			resolution := ""
			if v.Resolution.Verdict != "" {
				resolution = entryNote(v.Entry)
			}
			return []string{v.ProjectID, string(v.Key), s.Time(v.Key.Time()), s.Number(v.Credits), app.Dollars(v.Credits),
				v.Environment, v.Vendor, v.RequestID, resolution, v.Reference}
		})
	})
	cmd.Flags().BoolVar(&resolved, "all", false, "also those that are resolved")
	return cmd
}

// isUncertain says what the argument ID is.
const isUncertain = `ID is an ID of "svc sms uncertain list"`

func resolveUncertain(a *app.App) *cobra.Command {
	var key wallet.Key
	var confirm, refund bool
	resolution := books.Resolution{Verdict: books.VerdictConfirmed}
	cmd := a.ProjectCommand("resolve PROJECT ID", func(args []string) error {
		if refund {
			resolution.Verdict = books.VerdictRefunded
		}
		if confirm == refund {
			return app.Usagef("give either --confirm or --refund")
		}
		if resolution.Reason == "" {
			return errNoReason
		}
		return parseKey(&key, isUncertain)(args)
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) (err error) {
		if resolution.Actor, err = s.Actor(ctx); err != nil {
			return err
		}
		entry, err := s.Credits.Resolve(ctx, rec.ID, key, resolution)
		if err != nil {
			return err
		}
		balance, err := s.Credits.Balance(ctx, rec.ID)
		if err != nil {
			return err
		}
		r := entry.Resolution
		return s.PrintRows(map[string]any{
			"project_id": rec.ID, "id": entry.Key, "credits": entry.Credits, "resolution": r, "balance": balance,
		}, "Project", rec.ID, "SMS", string(entry.Key), "Credits", app.Credits(entry.Credits),
			"Resolution", string(r.Verdict), "Reason", r.Reason, "By", r.Actor, "Balance", app.Credits(balance))
	})
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the SMS was sent: the charge stays")
	cmd.Flags().BoolVar(&refund, "refund", false, "the SMS was not sent: refund the credits")
	cmd.Flags().StringVar(&resolution.Reason, "reason", "", "reason for the ledger")
	return cmd
}

const mayHaveBeenSent = "The message may have been sent: ask the vendor before you send again."

// sendFailures describes the outcomes of a test message that the vendor has not accepted.
var sendFailures = map[upstream.Class]error{
	upstream.NotSent: app.Failf(app.ExitFailed, "Check the integration's endpoint and the network.",
		"not sent: the vendor could not be reached"),
	upstream.Rejected: app.Failf(app.ExitRefused,
		"Nothing was sent. The vendor's message is above: check the number, the sender and the text.",
		"rejected: the vendor refused the message"),
	upstream.AccountRefused: app.Failf(app.ExitRefused,
		"Nothing was sent. The vendor's message is above: check the balance, the sender and the permitted hours.",
		"rejected: the vendor refused to send for the account"),
	upstream.TooFast: app.Failf(app.ExitRefused, "Nothing was sent: send it again later.",
		"rejected: the vendor gets too many requests"),
	upstream.CredentialsRefused: app.Failf(app.ExitRefused,
		`Nothing was sent. Correct the account: "svc integration set --ask", for Managed integrations "svc vendor account".`,
		"rejected: the vendor refused the account or its key"),
	upstream.NoResponse: app.Failf(app.ExitFailed, mayHaveBeenSent,
		"uncertain: the request was sent, and no response came"),
	upstream.Unusable: app.Failf(app.ExitFailed, mayHaveBeenSent, "uncertain: the vendor's response is not valid"),
}

// normalize replaces the number of the flag --to by its E.164 form.
func normalize(to *string) error {
	number, ok := project.NormalNumber(*to)
	if !ok {
		return app.Usagef("--to is 07XXXXXXXX or +947XXXXXXXX, not %q", *to)
	}
	*to = number
	return nil
}

func testSMS(a *app.App) *cobra.Command {
	var name, to string
	var env []project.Environment // one
	var message vendors.Message
	var count int
	var yes bool
	cmd := a.ProjectCommand("test PROJECT VENDOR", func(args []string) error {
		name = args[0]
		if _, err := catalog.Find(string(project.SMS), name); err != nil {
			return err
		}
		if err := normalize(&to); err != nil {
			return err
		}
		message.To = []string{to}
		if count, message.Unicode = units.Count(message.Text); count < 1 || count > units.Most {
			return app.Usagef("--message is 1 to %d SMS units, not %d", units.Most, count)
		}
		return nil
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		i := admin.Integration(rec, env[0], project.SMS, name)
		if i == nil {
			return fmt.Errorf("integration %s: %w", project.IntegrationID(env[0], project.SMS, name), admin.ErrNotFound)
		}
		account, err := catalog.Resolve(ctx, s, rec.ID, *i)
		if err != nil {
			return err
		}
		vendor := vendors.NewTable(s.AWS).Find(name)
		s.Note("From     %s (%s) through %s, sender %s", rec.ID, i.Environment, vendor.Title,
			app.Cell(account.Settings["sender_id"]))
		if account.Endpoint != "" {
			s.Note("Endpoint %s", account.Endpoint)
		}
		s.Note("To       %s", to)
		s.Note("Message  %q, SMS units: %d", message.Text, count)
		payer := map[project.Mode]string{project.Managed: "service", project.BYOK: "project"}[i.Mode]
		s.Note("Paid by  the %s's own account at %s; the project's credits are not charged", payer, vendor.Title)
		signer, err := signerOf(ctx, s, vendor, i.Mode)
		if err != nil {
			return err
		}
		if err := s.Confirm(ctx, yes, "Send it?"); err != nil {
			return err
		}
		message.Key = rand.Text()
		receipt, err := vendor.New(s.Vendors, account).Send(ctx, message)
		if err != nil {
			return fmt.Errorf("%w (%w)", sendFailures[upstream.ClassOf(err)], err)
		}
		return s.PrintRows(map[string]any{
			"project_id": rec.ID, "environment": i.Environment, "vendor": vendor.Name, "mode": i.Mode, "to": to,
			"units": count, "outcome": "accepted", "status": receipt.Status, "id": receipt.ID, "signed_by": signer,
		}, "Outcome", "accepted by "+vendor.Title, "Status", receipt.Status, "ID", receipt.ID)
	})
	app.EnvironmentFlag(cmd, &env, "development", false)
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "number of the recipient, 07XXXXXXXX or +947XXXXXXXX")
	flags.StringVar(&message.Text, "message", "A test message of SVC API.", "text of the message")
	flags.BoolVar(&yes, "yes", false, "send without asking")
	return cmd
}

// signerOf returns and prints the operator's AWS identity where that signs the call, and "" for another vendor.
func signerOf(ctx context.Context, s *app.Stack, vendor *vendors.Vendor, mode project.Mode) (string, error) {
	if vendor.ManagedAction == "" || mode != project.Managed {
		return "", nil
	}
	signer, err := s.Actor(ctx)
	if err == nil {
		s.Note("Signed   by %s, your own AWS identity, and not by the role of the function: svc integration check checks "+
			"that", signer)
	}
	return signer, err
}

// foundSMS is a message in the log, in the format for programs.
type foundSMS struct {
	loggedRequest
	loggedSend
	to string
}

// loggedRequest holds the fields of a log line that belong to the request.
type loggedRequest struct {
	Time        time.Time `json:"time"`
	RequestID   string    `json:"request_id"`
	Environment string    `json:"environment"`
	Mode        string    `json:"mode"`
	Operation   string    `json:"operation"`
	Credits     int64     `json:"credits"`
}

// loggedSend holds the fields of a log line that belong to one message.
type loggedSend struct {
	State     string `json:"state"`
	Vendor    string `json:"vendor"`
	VendorID  string `json:"vendor_id"`
	Reference string `json:"reference"`
}

// messagesOf returns the messages of a log line, also those beyond the ones whose outcomes the line has.
func messagesOf(l logLine) (found []foundSMS) {
	var line struct {
		loggedRequest
		Sends []struct {
			loggedSend
			To string
		}
		FurtherTo []string `json:"further_to"`
	}
	_ = json.Unmarshal(l.Text, &line) // a line of another form has no sends
	line.Time = l.At
	for _, m := range line.Sends {
		found = append(found, foundSMS{line.loggedRequest, m.loggedSend, m.To})
	}
	for _, to := range line.FurtherTo {
		send := loggedSend{State: "not_in_log", Vendor: l.Field("vendor")}
		found = append(found, foundSMS{line.loggedRequest, send, to})
	}
	return found
}

// findWindow is the time that the flags of "svc sms find" name.
type findWindow struct {
	around, from, to string
	last             time.Duration
}

// parseTime reads a time with a zone, or in UTC, or of today.
func parseTime(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05",
		"2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	if at, err := time.Parse("15:04", text); err == nil {
		now := time.Now().UTC()
		return time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC), nil
	}
	return time.Time{}, app.Usagef("%s is a time such as 2026-03-31T14:05 or 14:05, in UTC, or "+
		"2026-03-31T14:05:00+05:30, not %q", flag, text)
}

// findSpread is the time before and after --around.
const findSpread = 15 * time.Minute

// set writes the time of the flags to a filter.
func (w *findWindow) set(f *logFilter) error {
	begin, end := time.Now().Add(-w.last), time.Now()
	var err error
	switch {
	case w.around != "" && w.from+w.to != "":
		return app.Usagef("give --around, or --from with --to-time")
	case w.around != "":
		var at time.Time
		at, err = parseTime("--around", w.around)
		begin, end = at.Add(-findSpread), at.Add(findSpread)
	case w.from != "":
		var toErr error
		begin, err = parseTime("--from", w.from)
		if w.to != "" {
			end, toErr = parseTime("--to-time", w.to)
		}
		err = cmp.Or(err, toErr)
	case w.to != "":
		err = app.Usagef("--to-time needs --from")
	}
	if err == nil && (!begin.Before(end) || begin.After(time.Now())) {
		err = app.Usagef("the time ends before it begins, or begins in the future")
	}
	f.Until, f.Last = end, end.Sub(begin)
	return err
}

func findSMS(a *app.App) *cobra.Command {
	f := &logFilter{Time: time.Minute, Lines: 1000}
	w := &findWindow{}
	var to string
	var envs []project.Environment
	cmd := a.ProjectCommand("find PROJECT", func([]string) error {
		return cmp.Or(normalize(&to), w.set(f))
	}, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		f.Project, f.Term = rec.ID, rec.LoggedNumber(to)
		lines, missing, err := f.Search(ctx, s)
		if err != nil {
			return err
		}
		if missing != "" {
			s.Note("%s", missing)
		}
		var all []foundSMS
		for _, l := range lines {
			all = append(all, messagesOf(l)...)
		}
		all = slices.DeleteFunc(all, func(m foundSMS) bool {
			return m.to != f.Term || !slices.Contains(envs, project.Environment(m.Environment))
		})
		const header = "TIME, REQUEST, STATE, VENDOR, VENDOR ID, OPERATION, ENVIRONMENT, MODE, CREDITS, REFERENCE"
		empty := "No message to that number in the logs. Requests with an uncertain outcome: " +
			s.Line("sms uncertain list %s", rec.ID)
		return app.PrintList(s.App, header, empty, all, func(m foundSMS) []string {
			return []string{s.Time(m.Time), m.RequestID, m.State, m.Vendor, m.VendorID, m.Operation, m.Environment,
				m.Mode, s.Number(m.Credits), m.Reference}
		})
	})
	app.EnvironmentFlag(cmd, &envs, "both", true)
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "number of the recipient, 07XXXXXXXX or +947XXXXXXXX")
	flags.StringVar(&w.around, "around", "", "time of the message: a quarter of an hour before and after it")
	flags.StringVar(&w.from, "from", "", "first time")
	flags.StringVar(&w.to, "to-time", "", "last time (default now)")
	flags.DurationVar(&w.last, "last", 24*time.Hour, "age of the oldest message")
	return cmd
}

// pastStatus is what a vendor says of an earlier send, in the format for programs.
type pastStatus struct {
	ProjectID   string        `json:"project_id"`
	Environment string        `json:"environment"`
	Reference   string        `json:"reference"`
	Vendor      string        `json:"vendor"`
	State       vendors.State `json:"status"`
	Word        string        `json:"vendor_status"`
	Reason      string        `json:"reason"` // of the status unknown
}

// pastSend is a send to ask about.
type pastSend struct {
	record      *project.Record
	environment project.Environment
	reference   string
	vendor      string
	send        vendors.PastSend
}

func smsStatus(a *app.App) *cobra.Command {
	var given, only string
	var last time.Duration
	cmd := a.Command("status REQUEST_ID|REFERENCE", func(args []string) error {
		given = args[0]
		if last <= 0 {
			return app.Usagef("--last is a time above 0, such as 72h")
		}
		return nil
	}, func(ctx context.Context, s *app.Stack) error {
		sends, err := sendsOf(ctx, s, given, only, last)
		if err != nil {
			return err
		}
		var all []pastStatus
		for _, p := range sends {
			found, err := p.ask(ctx, s)
			if err != nil {
				return err
			}
			all = append(all, pastStatus{p.record.ID, string(p.environment), p.reference, p.vendor, found.State, found.Word,
				found.Reason})
			if found.Reason == vendors.ReasonNoStatus {
				s.Note("%s reports no state. These vendors do: %s.", p.vendor,
					strings.Join(vendors.NewTable(s.AWS).Reporting(s.Vendors), ", "))
			}
		}
		const header = "PROJECT, ENVIRONMENT, VENDOR, STATUS, VENDOR'S WORD, REASON, REFERENCE"
		return app.PrintList(s.App, header, "", all, func(v pastStatus) []string {
			return []string{v.ProjectID, v.Environment, v.Vendor, string(v.State), v.Word, v.Reason, v.Reference}
		})
	})
	cmd.Flags().StringVar(&only, "project", "", "the project of the message")
	cmd.Flags().DurationVar(&last, "last", 7*24*time.Hour, "age of the oldest log line of a REQUEST_ID")
	return cmd
}

// sendsOf returns the sends of a request ID or of a reference.
func sendsOf(ctx context.Context, s *app.Stack, given, only string, last time.Duration) ([]pastSend, error) {
	projects, err := s.ListProjects(ctx, only)
	if err != nil {
		return nil, err
	}
	if id, err := uuid.Parse(given); err == nil {
		return sendsOfRequest(ctx, s, id.String(), only, last)
	}
	for _, p := range projects {
		rec, err := s.Load(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		if p, ok := openReference(rec, given); ok {
			return []pastSend{p}, nil
		}
	}
	return nil, app.Failf(app.ExitNotFound, `"svc sms find" shows the references of messages.`,
		"no project has this reference")
}

// openReference opens a reference of a project.
func openReference(rec *project.Record, text string) (pastSend, bool) {
	for _, env := range admin.Environments() {
		if vendor, send, ok := vendors.NewSealer(&rec.Project, env).Open(text); ok {
			return pastSend{rec, env, text, vendor, send}, true
		}
	}
	return pastSend{}, false
}

// sendsOfRequest returns the sends of a request: from its log line, else from an uncertain charge.
func sendsOfRequest(ctx context.Context, s *app.Stack, id, only string, last time.Duration) ([]pastSend, error) {
	var sends []pastSend
	f := logFilter{ID: id, Project: only, Last: last, Lines: 10, Time: time.Minute}
	lines, _, err := f.Search(ctx, s)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, l := range lines {
		for _, m := range messagesOf(l) {
			if m.Reference == "" || known[m.Reference] {
				continue
			}
			known[m.Reference] = true
			rec, err := s.Load(ctx, l.Field("project"))
			if err != nil {
				return nil, err
			}
			if p, ok := openReference(rec, m.Reference); ok {
				sends = append(sends, p)
			}
		}
	}
	if len(sends) > 0 {
		return sends, nil
	}
	hint := fmt.Sprintf(`The log has no message of it that a vendor may have accepted: %s shows its lines.`,
		s.Line("logs %s", id))
	err = s.Credits.VisitUncertain(ctx, func(projectID string, e books.Entry, err error) {
		if err == nil && e.RequestID == id {
			hint = "Its outcome is uncertain: " + s.Line("sms uncertain ask %s %s", projectID, e.Key)
		}
	})
	return nil, cmp.Or(err, app.Failf(app.ExitNotFound, hint, "no reference of request %s", id))
}

// ask asks the vendor of the send through the integration of the project, active or not.
func (p pastSend) ask(ctx context.Context, s *app.Stack) (vendors.Status, error) {
	i := admin.Integration(p.record, p.environment, project.SMS, p.vendor)
	if i == nil {
		return vendors.Status{}, fmt.Errorf("integration %s, the one of the send: %w",
			project.IntegrationID(p.environment, project.SMS, p.vendor), admin.ErrNotFound)
	}
	table, cache := vendors.NewTable(s.AWS), uncachedSecrets(s)
	account, err := s.Vendors.Resolve(ctx, p.record.ID, *i, table.Spec(p.vendor), cache)
	if err != nil {
		return vendors.Status{}, err
	}
	return table.CheckStatus(ctx, s.Vendors, cache, account, p.send)
}

// uncachedSecrets returns the reader of the accounts, without a cache.
func uncachedSecrets(s *app.Stack) *upstream.SecretCache {
	return upstream.NewSecretCache(s.Vault, s.Stage, upstream.SecretConfig{},
		telemetry.New(io.Discard, telemetry.Config{}))
}

func askUncertain(a *app.App) *cobra.Command {
	var key wallet.Key
	parse := parseKey(&key, isUncertain)
	return a.ProjectCommand("ask PROJECT ID", parse, func(ctx context.Context, s *app.Stack, rec *project.Record) error {
		entries, err := s.Credits.Uncertain(ctx, rec.ID)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(entries, func(e books.Entry) bool { return e.Key == key })
		if i < 0 {
			return fmt.Errorf("%s: %w", key, books.ErrNotUncertain)
		}
		actor, err := s.Actor(ctx)
		if err != nil {
			return err
		}
		asker := &uncertain.Asker{Credits: s.Credits, Projects: s.Projects.Store, Client: s.Vendors,
			Secrets: uncachedSecrets(s), Vendors: vendors.NewTable(s.AWS), Absent: uncertain.Absent, Now: time.Now, Actor: actor}
		verdict, reply, err := asker.Resolve(ctx, rec.ID, entries[i], map[string]bool{})
		if err != nil {
			return err
		}
		if reply.Vendor == "" || reply.Reason == vendors.ReasonNoStatus {
			s.Note("No vendor of the send reports a state. These vendors do: %s.",
				strings.Join(asker.Vendors.Reporting(s.Vendors), ", "))
		}
		return s.PrintRows(map[string]any{
			"project_id": rec.ID, "id": key, "vendor": reply.Vendor, "status": reply.State, "vendor_status": reply.Word,
			"reason": reply.Reason, "result": verdict,
		}, "Project", rec.ID, "SMS", string(key), "Vendor", reply.Vendor, "Status", string(reply.State),
			"Vendor's word", reply.Word, "Reason", reply.Reason, "Result", string(verdict))
	})
}
