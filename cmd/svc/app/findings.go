package app

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Warning Severity = "warning"
	Broken  Severity = "broken"
)

// Finding is the result of one check.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    string   `json:"check"`
	Subject  string   `json:"subject"`
	Detail   string   `json:"detail"`
	// Advice is empty where nothing needs to be done.
	Advice string `json:"advice"`
}

// Findings are the results of a run's checks, in their order.
type Findings struct{ Found []Finding }

// Add adds a finding.
func (f *Findings) Add(s Severity, check, subject, detail, advice string) {
	f.Found = append(f.Found, Finding{s, check, subject, detail, advice})
}

// AddIf adds a finding where the check has found the problem.
func (f *Findings) AddIf(found bool, s Severity, check, subject, detail, advice string) {
	if found {
		f.Add(s, check, subject, detail, advice)
	}
}

// Failed adds an error of AWS with its hint, and reports whether there is an error.
func (f *Findings) Failed(check, subject string, err error) bool {
	if err != nil {
		f.Add(Broken, check, subject, err.Error(), Hint(err))
	}
	return err != nil
}

// PrintFindings prints the problems among findings, or all findings, and returns an error where something is broken.
func (a *App) PrintFindings(found []Finding, all bool) error {
	count := map[Severity]int{}
	shown := []Finding{}
	t := Table{Header: []string{"", "CHECK", "SUBJECT", "DETAIL", "ADVICE"}, Empty: "All checks passed."}
	for _, f := range found {
		count[f.Severity]++
		if f.Severity == OK && !all {
			continue
		}
		shown = append(shown, f)
		t.Rows = append(t.Rows, []string{string(f.Severity), f.Check, f.Subject, f.Detail, f.Advice})
	}
	if err := a.Print(shown, t); err != nil {
		return err
	}
	a.Note("%d in order, %s, %d broken.", count[OK], Count(count[Warning], "warning", "warnings"), count[Broken])
	return Problems(count[Broken])
}
