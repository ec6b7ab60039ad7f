package app

import (
	"cmp"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// firstDay is before the first entry of every ledger.
var firstDay = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// Days are the UTC days that the flags of a command name.
type Days struct {
	First, Last time.Time // the begins of the first and of the last day; Parse sets them

	day, month, from, to string
	days                 int
	given                func(names ...string) bool // reports whether the command line has one of these flags
}

// AddFlags adds the flags. Without any of them the only day is today.
func (d *Days) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.day, "day", "today", "UTC date, today or yesterday")
	flags.IntVar(&d.days, "days", 1, "number of days, --day the last of them")
	flags.StringVar(&d.month, "month", "", "UTC month, such as 2026-03")
	flags.StringVar(&d.from, "from", "", "first UTC date, today or yesterday")
	flags.StringVar(&d.to, "to", "today", "last UTC date, today or yesterday")
	d.given = func(names ...string) bool { return slices.ContainsFunc(names, flags.Changed) }
}

// Parse sets the days of the flags, whatever the arguments are. The days are not before 2020 and not after today.
func (d *Days) Parse([]string) (err error) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	parse := func(flag, text, layout string) time.Time {
		day, failed := time.Parse(layout, text)
		switch {
		case text == "today" && layout == time.DateOnly:
			return today
		case text == "yesterday" && layout == time.DateOnly:
			return today.AddDate(0, 0, -1)
		case failed != nil:
			err = Usagef("%s is a UTC date such as 2026-03-31, today or yesterday, or for --month such as 2026-03, not %q", flag,
				text)
		}
		err = cmp.Or(err, ValidateDay(flag, day))
		return day
	}
	whole, between := d.given("month"), d.given("from", "to")
	switch {
	case whole && between, (whole || between) && d.given("day", "days"), d.given("to") && d.from == "":
		return Usagef("the days are --day with --days, or --month, or --from with --to")
	case whole:
		d.First = parse("--month", d.month, "2006-01")
		if d.Last = d.First.AddDate(0, 1, -1); d.Last.After(today) {
			d.Last = today
		}
	case between:
		d.First, d.Last = parse("--from", d.from, time.DateOnly), parse("--to", d.to, time.DateOnly)
	default:
		d.Last = parse("--day", d.day, time.DateOnly)
		d.First = d.Last.AddDate(0, 0, 1-d.days)
	}
	if err == nil && d.First.After(d.Last) {
		err = Usagef("--days is 1 or more, and --from is not after --to")
	}
	return cmp.Or(err, ValidateDay("the first day", d.First))
}

// Period returns the month, the day, or the first and the last day with two dots between them.
func (d *Days) Period() string {
	first, last := d.First.Format(time.DateOnly), d.Last.Format(time.DateOnly)
	switch {
	case d.given("month"):
		return d.First.Format("2006-01")
	case first == last:
		return first
	}
	return first + ".." + last
}

// ValidateDay refuses days that no ledger entry can have.
func ValidateDay(flag string, at time.Time) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if at.Before(firstDay) || !at.Before(today.AddDate(0, 0, 1)) {
		return Usagef("%s is of %s; it can be of %s to today, %s (UTC)", flag, at.UTC().Format(time.DateOnly),
			firstDay.Format(time.DateOnly), today.Format(time.DateOnly))
	}
	return nil
}
