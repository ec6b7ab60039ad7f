package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"svcapi/shared/credit"
)

// moved is what a movement came to.
type moved struct {
	ProjectID string     `json:"project_id"`
	ID        credit.Key `json:"id"`
	Credits   int64      `json:"credits"`
	Actor     string     `json:"actor"`
	Balance   int64      `json:"balance"`
}

func (a *app) printMoved(ctx context.Context, s *stack, what string, m moved) error {
	var err error
	if m.Balance, err = s.credits.Balance(ctx, m.ProjectID); err != nil {
		return err
	}
	return a.print(m, table{rows: [][]string{
		{"Project", m.ProjectID}, {what, string(m.ID)}, {"Credits", grouped(m.Credits)}, {"By", m.Actor}, {"Balance", grouped(m.Balance) + " credits"},
	}})
}

// movement is an operator's, of a project that is there: a new one, or that of --id. What is its name with the article.
func (s *stack) movement(ctx context.Context, what, projectID string, credits int64, id, reason string) (credit.Movement, error) {
	if reason == "" {
		return credit.Movement{}, errNoReason
	}
	request := uuid.NewString()
	key, err := movementKey(what, id, request)
	if err != nil {
		return credit.Movement{}, err
	}
	if _, err := s.load(ctx, projectID); err != nil {
		return credit.Movement{}, err
	}
	actor, err := s.actor(ctx)
	return credit.Movement{Project: projectID, ID: key, Credits: credits, Reason: reason, Actor: actor, RequestID: request}, err
}

// move makes a movement and prints it, or says how to repeat it where it is not clear that it was made.
func (a *app) move(ctx context.Context, s *stack, what string, m credit.Movement, write func(context.Context, credit.Movement) error) error {
	if err := write(ctx, m); err != nil {
		if !refusedForSure(err) {
			a.note("It is not clear whether the %s took effect. Repeat the command with --id %s: it counts once.", strings.ToLower(what), m.ID)
		}
		return err
	}
	return a.printMoved(ctx, s, what, moved{m.Project, m.ID, m.Credits, m.Actor, 0})
}

func (a *app) creditAdjust() *cobra.Command {
	var id, reason string
	var credits int64
	cmd := &cobra.Command{
		Use:   "adjust PROJECT --by CREDITS",
		Short: "Correct a balance in either direction",
		Long: `Correct a balance in either direction. An adjustment has an ID and takes effect
once: if the answer is lost, repeat the command with the --id that was printed.`,
		Example: `  svc credit adjust acme --by 5000 --reason "ticket 812"
  svc credit adjust acme --by -5000 --reason "booked twice"`,
		Args: cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			if credits == 0 {
				return &usageError{"--by is a whole number other than 0"}
			}
			m, err := s.movement(ctx, "an adjustment", args[0], credits, id, reason)
			if err != nil {
				return err
			}
			if a.dryRun && id == "" { // the store would refuse it as it writes
				balance, err := s.credits.Balance(ctx, m.Project)
				if err != nil {
					return err
				}
				if balance+credits < 0 {
					return fmt.Errorf("%w: %s credits of %s", credit.ErrOutOfRange, grouped(credits), grouped(balance))
				}
			}
			return a.move(ctx, s, "Adjustment", m, s.credits.Adjust)
		}),
	}
	cmd.Flags().Int64Var(&credits, "by", 0, "credits to add, or below 0 to take")
	cmd.Flags().StringVar(&id, "id", "", "repeat the adjustment of this ID")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger")
	return cmd
}

var errNoReason = &usageError{"give a --reason: it stands in the ledger"}

func (a *app) creditRefund() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "refund PROJECT CHARGE",
		Short: "Give a charge back, whole and once",
		Long: `Give a charge back, whole and once, however often the command is repeated. CHARGE
is its ID in "svc credit ledger --output json". An uncertain SMS is resolved
instead: "svc sms uncertain resolve".`,
		Example: `  svc credit refund acme 1767225600000000-abcdefgh --reason "ticket 812"`,
		Args:    cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			charge, err := credit.ParseKey(args[1])
			if err != nil {
				return &usageError{`CHARGE is an ID of "svc credit ledger --output json", not ` + strconv.Quote(args[1])}
			}
			if reason == "" {
				return errNoReason
			}
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			actor, err := s.actor(ctx)
			if err != nil {
				return err
			}
			entry, err := s.credits.RefundCharge(ctx, args[0], charge, reason, actor)
			if err != nil {
				return err
			}
			return a.printMoved(ctx, s, "Refund of", moved{args[0], charge, entry.Credits, actor, 0})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger")
	return cmd
}

func (a *app) creditAlert() *cobra.Command {
	return &cobra.Command{
		Use:   "alert PROJECT CREDITS",
		Short: "Ring the stack's low-wallet alarm when a balance is below these credits; 0 ends that",
		Args:  cobra.ExactArgs(2),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			credits, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || credits < 0 {
				return &usageError{"CREDITS is a whole number, 0 or more, not " + strconv.Quote(args[1])}
			}
			if _, err := s.load(ctx, args[0]); err != nil {
				return err
			}
			if err := s.credits.SetAlert(ctx, args[0], credits); err != nil {
				return err
			}
			says := "below " + grouped(credits) + " credits"
			if credits == 0 {
				says = "none"
			}
			return a.print(struct {
				ProjectID string `json:"project_id"`
				Alert     int64  `json:"alert"`
			}{args[0], credits}, table{rows: [][]string{{"Project", args[0]}, {"Alert", says}}})
		}),
	}
}

// firstDay is older than every ledger.
var firstDay = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkDay refuses days on which nobody looks for an entry of the ledger.
func checkDay(flag string, at time.Time) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if at.Before(firstDay) || !at.Before(today.AddDate(0, 0, 1)) {
		return &usageError{fmt.Sprintf("%s is of %s; it can be of %s to today, %s (UTC)", flag, at.UTC().Format(time.DateOnly), firstDay.Format(time.DateOnly), today.Format(time.DateOnly))}
	}
	return nil
}

// bulkGrant is one line of a file of grants.
type bulkGrant struct {
	ProjectID string     `json:"project_id"`
	Credits   int64      `json:"credits"`
	Reason    string     `json:"reason"`
	ID        credit.Key `json:"id"`
	Outcome   string     `json:"outcome"` // granted, would be granted, or what went wrong
}

var batchForm = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})(-[A-Za-z0-9._-]{1,80})?$`)

// byteOrderMark is what spreadsheets put before UTF-8.
const byteOrderMark = "\ufeff"

// maxGrants bounds a file of grants.
const maxGrants = 100_000

// readGrants reads lines of project, credits and, if there is one, a reason. All that is wrong is said at once. A
// project stands once: batch and project together make the grant's ID, so that no repeat pays twice.
func readGrants(from io.Reader, batch, reason string) ([]bulkGrant, error) {
	match := batchForm.FindStringSubmatch(batch)
	if match == nil {
		return nil, &usageError{"--batch names the file's grants and begins with their date, such as 2026-03-31-invoices, not " + strconv.Quote(batch)}
	}
	day, err := time.Parse(time.DateOnly, match[1])
	if err != nil {
		return nil, &usageError{"--batch: " + match[1] + " is no date"}
	}
	if err := checkDay("--batch", day); err != nil {
		return nil, err
	}
	text := bufio.NewReader(from)
	if mark, err := text.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = text.Discard(len(byteOrderMark))
	}
	lines := csv.NewReader(text)
	lines.FieldsPerRecord, lines.Comment, lines.TrimLeadingSpace = -1, '#', true
	var grants []bulkGrant
	var wrong []string
	seen := map[string]bool{}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &usageError{err.Error()}
		}
		line, _ := lines.FieldPos(0)
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if line == 1 && (strings.EqualFold(fields[0], "project") || strings.EqualFold(fields[0], "project_id")) {
			continue
		}
		g := bulkGrant{ProjectID: fields[0], Reason: reason}
		if len(fields) > 1 {
			g.Credits, err = strconv.ParseInt(fields[1], 10, 64)
		}
		if len(fields) > 2 {
			g.Reason = cmp.Or(fields[2], reason)
		}
		switch {
		case len(fields) < 2 || len(fields) > 3 || err != nil || g.Credits < 1:
			wrong = append(wrong, fmt.Sprintf("line %d is not PROJECT,CREDITS or PROJECT,CREDITS,REASON", line))
		case seen[g.ProjectID]:
			wrong = append(wrong, fmt.Sprintf("line %d: %s stands twice", line, g.ProjectID))
		case g.Reason == "":
			wrong = append(wrong, fmt.Sprintf("line %d has no reason, and no --reason is given", line))
		}
		seen[g.ProjectID] = true
		g.ID = credit.NewKey(day, batch+"#"+g.ProjectID)
		if grants = append(grants, g); len(grants) > maxGrants {
			return nil, &usageError{fmt.Sprintf("more than %d grants: part the file", maxGrants)}
		}
	}
	if len(wrong) > 0 {
		return nil, &usageError{strings.Join(wrong[:min(len(wrong), 20)], "\n     ")}
	}
	if len(grants) == 0 {
		return nil, &usageError{"there are no grants in it"}
	}
	return grants, nil
}

var errNotAll = errors.New("not every grant was made; what was made stays, and counts once: correct the file and run the command again")

func (a *app) creditGrants() *cobra.Command {
	var batch, reason string
	cmd := &cobra.Command{
		Use:   "grants FILE.csv",
		Short: "Grant credits to many projects",
		Long: `Grant credits to many projects. Each line is PROJECT,CREDITS or
PROJECT,CREDITS,REASON; a first line that begins with the column "project" or
"project_id" and lines that begin with # are passed over. "-" reads standard input.

Nothing is granted unless every line is right and every project is there. A
grant counts once for its batch and project, so the command may be repeated.`,
		Example: `  svc credit grants march.csv --batch 2026-03-31-invoices --reason invoice --dry-run`,
		Args:    cobra.ExactArgs(1),
		RunE: a.on(func(ctx context.Context, s *stack, args []string) error {
			from := a.in
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return &usageError{err.Error()}
				}
				defer func() { _ = file.Close() }()
				from = file
			}
			grants, err := readGrants(from, batch, reason)
			if err != nil {
				return err
			}
			projects, err := s.projects.ListProjects(ctx)
			if err != nil {
				return err
			}
			known := map[string]bool{}
			for _, p := range projects {
				known[p.ID] = true
			}
			var absent []string
			for _, g := range grants {
				if !known[g.ProjectID] {
					absent = append(absent, g.ProjectID)
				}
			}
			if len(absent) > 0 {
				return &usageError{"no such projects: " + strings.Join(absent[:min(len(absent), 20)], ", ")}
			}
			actor, err := s.actor(ctx)
			if err != nil {
				return err
			}
			return a.grantAll(ctx, s, grants, actor)
		}),
	}
	cmd.Flags().StringVar(&batch, "batch", "", "name of the grants, beginning with their date: 2026-03-31-invoices")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the ledger, where a line says nothing")
	return cmd
}

func (a *app) grantAll(ctx context.Context, s *stack, grants []bulkGrant, actor string) error {
	failed, total := 0, int64(0)
	step := a.progress("granting", len(grants))
	for i := range grants {
		g := &grants[i]
		step()
		err := ctx.Err()
		if err == nil && !a.dryRun {
			err = s.credits.CreateWallet(ctx, g.ProjectID)
		}
		if err == nil && !a.dryRun {
			err = s.credits.Grant(ctx, credit.Movement{Project: g.ProjectID, ID: g.ID, Credits: g.Credits, Reason: g.Reason, Actor: actor, RequestID: string(g.ID)})
		}
		switch {
		case err != nil:
			g.Outcome = err.Error()
			failed++
			continue
		case a.dryRun:
			g.Outcome = "would be granted"
		default:
			g.Outcome = "granted"
		}
		total += g.Credits
	}
	t := table{header: []string{"PROJECT", "CREDITS", "REASON", "ID", "OUTCOME"}}
	for _, g := range grants {
		t.rows = append(t.rows, []string{g.ProjectID, grouped(g.Credits), g.Reason, string(g.ID), g.Outcome})
	}
	if err := a.print(grants, t); err != nil {
		return err
	}
	a.note("%s credits in %d grants, %d failed.", grouped(total), len(grants)-failed, failed)
	if failed > 0 {
		return errNotAll
	}
	return nil
}
