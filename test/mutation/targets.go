package main

import "slices"

// target is a package whose every small change some test must notice.
type target struct {
	folder string
	files  []string // of the folder; none: all
	tests  []string // folders of other packages whose tests take part
	skip   string   // tests that take no part, as go test -skip has them
}

var targets = []target{
	{folder: "functions/sms/units"},
	{folder: "shared/rates", files: []string{"decimal.go", "check.go", "table.go", "bank.go"}, skip: "^Test(CurrentIsReplacedWhole|Sources|History|Claim)$"},
	{folder: "functions/currency", files: []string{"operations.go"}},
	{folder: "shared/ipaddr"},
	{folder: "functions/pdf/fetch", files: []string{"public.go"}},
	{folder: "shared/address"},
	{folder: "shared/ratelimit"},
	{folder: "shared/credit", skip: "^TestExact"}, // the same under load: much longer, and no rule of its own
	{folder: "shared/idempotency"},
	{folder: "functions/settle", files: []string{"config.go", "settle.go"}, skip: "^(TestFaultSchedules|TestReplay)$"},
	{folder: "shared/api", files: []string{"pipeline.go", "reservation.go", "idempotency.go", "operation.go"}},
}

// tested are the packages whose tests run.
func (t target) tested() []string {
	packages := []string{"./" + t.folder}
	for _, folder := range t.tests {
		packages = append(packages, "./"+folder)
	}
	return packages
}

func (t target) mutates(file string) bool { return len(t.files) == 0 || slices.Contains(t.files, file) }
