package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/cmd/svc/app"
	"svcapi/local/workdir"
	"svcapi/test/enginetest"
	"svcapi/test/must"
	"svcapi/test/proxytest"
)

// account is an AWS account as svc sees it.
type account struct {
	stack       string // status; empty: there is no stack
	parameters  map[string]string
	tables      []string // names
	refuse      string   // a service that refuses access
	concurrency int      // 0: 1,000
	rate        int      // 0: 10,000
	code        int64    // MiB of 1,000 of code storage
	logRole     bool
}

// ServeHTTP implements http.Handler for the calls of preflight, of rekey and of the check of a right.
func (a account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	service := strings.Split(r.Header.Get("Authorization"), "/")[3]
	if service == a.refuse {
		w.Header().Set("X-Amzn-Errortype", "AccessDeniedException:http://internal")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message":"no"}`)
		return
	}
	switch {
	case service == "sts":
		fmt.Fprint(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/me</Arn>`+
			`</GetCallerIdentityResult></GetCallerIdentityResponse>`)
	case service == "cloudformation" && a.stack == "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>ValidationError</Code><Message>Stack with id svc-prod does not `+
			`exist</Message></Error></ErrorResponse>`)
	case service == "cloudformation":
		parameters := "" // as samconfig.toml's prod has them
		if a.parameters["PdfIsolation"] == "" {
			parameters = `<member><ParameterKey>PdfIsolation</ParameterKey><ParameterValue>project</ParameterValue></member>`
		}
		for name, value := range a.parameters {
			parameters += fmt.Sprintf(`<member><ParameterKey>%s</ParameterKey><ParameterValue>%s</ParameterValue></member>`,
				name, value)
		}
		fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>svc-prod</StackName>`+
			`<StackStatus>%s</StackStatus><Parameters>%s</Parameters>`+
			`<Outputs><member><OutputKey>SmsFunctionArn</OutputKey><OutputValue>`+
			`arn:aws:lambda:eu-west-1:123456789012:function:sms</OutputValue></member></Outputs>`+
			`</member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, a.stack, parameters)
	case service == "dynamodb":
		var asked struct{ TableName string }
		if json.Unmarshal(body, &asked); slices.Contains(a.tables, asked.TableName) {
			fmt.Fprintf(w, `{"Table":{"TableName":%q}}`, asked.TableName)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"none"}`)
	case service == "lambda" && strings.TrimSuffix(r.URL.Path, "/") == "/2016-08-19/account-settings":
		n := cmp.Or(a.concurrency, 1000)
		fmt.Fprintf(w, `{"AccountLimit":{"ConcurrentExecutions":%d,"UnreservedConcurrentExecutions":%d,"TotalCodeSize":%d},`+
			`"AccountUsage":{"TotalCodeSize":%d}}`, n, n, 1000<<20, a.code<<20)
	case service == "apigateway" && r.URL.Path == "/account":
		role := map[bool]string{true: `"cloudwatchRoleArn":"arn:aws:iam::123456789012:role/logs",`}[a.logRole]
		fmt.Fprintf(w, `{%s"throttleSettings":{"rateLimit":%d.0,"burstLimit":5000}}`, role, cmp.Or(a.rate, 10000))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// hosts sets PdfImageHosts to a list of a length.
func hosts(length int) string {
	return "--parameter PdfImageHosts=" + strings.Repeat("a.example,", length/10-1) + "a.example0 "
}

// TestPreflight: preflight finds what would stop a deployment, and nothing on an account that is ready.
func TestPreflight(t *testing.T) {
	root, err := workdir.Root()
	must.Succeed(t, err)
	programs := t.TempDir()
	for _, name := range []string{"sam", "go", "make", "bash", "node", "npm"} {
		if err := os.WriteFile(filepath.Join(programs, name),
			[]byte("#!/bin/sh\necho "+name+" version 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs)
	t.Setenv("SVC_STAGE", "prod")
	const topic = "--parameter AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:team "
	one := account{stack: "UPDATE_COMPLETE", parameters: map[string]string{"PdfIsolation": "shared"}}
	const acm = "CertificateArn=arn:aws:acm:us-east-1:123456789012:certificate/1"
	for name, c := range map[string]struct {
		account account
		args    string
		exit    int
		want    []string // patterns, each of one finding
	}{
		"ready":             {args: topic},
		"ready for dev":     {args: topic + "--stage dev"},
		"ready for staging": {args: topic + "--stage staging"},
		"a stack to be updated": {account: account{stack: "UPDATE_COMPLETE", tables: []string{"svc-prod-wallets"}},
			args: topic},
		"no topic": {want: []string{"warning parameter AlarmTopicArn: .*notify no one"}},
		"a table left": {account{tables: []string{"svc-prod-wallets"}}, topic, 1,
			[]string{"broken table svc-prod-wallets: .*ResourceExistenceCheck"}},
		"a failed creation": {account{stack: "ROLLBACK_COMPLETE"}, topic, 1,
			[]string{"broken stack svc-prod: .*ROLLBACK_COMPLETE"}},
		"a state to come":      {account{stack: "MOVED"}, topic, 1, []string{"broken stack svc-prod: it is MOVED"}},
		"a rolled back update": {account{stack: "UPDATE_ROLLBACK_COMPLETE"}, topic, 0, nil},
		"a change set": {account{stack: "REVIEW_IN_PROGRESS"}, topic, 0,
			[]string{"warning stack svc-prod: .*REVIEW_IN_PROGRESS"}},
		"a change set and a table": {account{stack: "REVIEW_IN_PROGRESS", tables: []string{"svc-prod-wallets"}}, topic, 1,
			[]string{"warning stack svc-prod: ", "broken table svc-prod-wallets: "}},
		"code for 80 %": {account{code: 800}, topic, 0, nil},
		"code above 80 %": {account{code: 801}, topic, 0,
			[]string{"warning quota Lambda code storage: 801 of 1000 MiB"}},
		"hosts within 4 KB": {account{}, topic + hosts(3000), 0, nil},
		"hosts above 4 KB": {account{},
			"--parameter AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:" + strings.Repeat("t", 5000) + " " + hosts(4000), 1,
			[]string{"broken environment PdfRenderFunction: its variables have 4[0-9]{3} bytes .*4096, Shorten PdfImageHosts "}},
		"at work": {account{stack: "UPDATE_IN_PROGRESS"}, topic, 1,
			[]string{"broken stack svc-prod: .*IN_PROGRESS"}},
		"a new account": {account{concurrency: 10}, topic, 1,
			[]string{"broken quota Lambda: .*10 functions at once"}},
		"too much for PDF": {account{}, topic + "--parameter PdfConcurrency=901", 1,
			[]string{"broken quota Lambda: .*PdfConcurrency=901"}},
		"as much as allowed":       {account{}, topic + "--parameter PdfConcurrency=900", 0, nil},
		"more than Lambda carries": {account{concurrency: 400}, topic, 0, []string{"warning quota Lambda: .*400 functions"}},
		"more than the gateway's":  {account{rate: 999}, topic, 0, []string{"warning quota API Gateway: .*999 requests"}},
		"logs without the role": {account{}, topic + "--parameter AccessLogs=on", 1,
			[]string{"broken account API Gateway: .*log role"}},
		"logs with the role": {account{logRole: true}, topic + "--parameter AccessLogs=on", 0, nil},
		"no permission":      {account{refuse: "lambda"}, topic, 1, []string{"broken quota Lambda: .*AccessDenied"}},
		"signed out":         {account{refuse: "sts"}, topic, 1, []string{"broken sign-in AWS: .*who you are"}},
		"a fraction": {account{}, topic + "--parameter PriceSms=1.5 --parameter ApiBurst=2.5", 1,
			[]string{"broken parameter ApiBurst: .*an integer", "broken parameter PriceSms: .*of the pattern"}},
		"out of range": {account{}, topic + "--parameter PdfMaxPages=0", 1,
			[]string{"broken parameter PdfMaxPages: .*at least 1"}},
		"too much": {account{}, topic + "--parameter PdfMaxPages=2001", 1,
			[]string{"broken parameter PdfMaxPages: .*at most 2000"}},
		"none of the values": {account{}, topic + "--parameter Docs=false", 1,
			[]string{"broken parameter Docs: .*one of on, off"}},
		"an unknown parameter": {account{}, topic + "--parameter PriceFax=1", 1,
			[]string{"broken parameter PriceFax: .*no such parameter"}},
		"half a host name": {account{}, topic + "--parameter DomainName=api.example.com", 1,
			[]string{"broken parameters DomainName: .*needs CertificateArn"}},
		"a certificate elsewhere": {account{}, topic + "--parameter DomainName=api.example.com --parameter " + acm, 1,
			[]string{"broken parameter CertificateArn: .*us-east-1"}},
		"two web ACLs": {account{}, topic +
			"--parameter AddressRequestsPer5Minutes=100 --parameter " +
			"WebAclArn=arn:aws:wafv2:eu-west-1:123456789012:regional/webacl/a/b", 1,
			[]string{"broken parameters WebAclArn: .*one web ACL"}},
		"a topic and an address": {account{}, topic + "--parameter AlarmEmail=team@example.com", 1,
			[]string{"broken parameters AlarmEmail: .*excludes AlarmTopicArn"}},
		"an address": {account{}, "--parameter AlarmEmail=team@example.com --parameter MonthlyBudgetUsd=200", 0, nil},
		"a budget and no topic": {account{}, "--parameter MonthlyBudgetUsd=200", 1,
			[]string{"broken parameters MonthlyBudgetUsd: .*needs AlarmTopicArn", "warning parameter AlarmTopicArn"}},
		"a renderer for each project": {one, topic, 0, []string{"warning parameter PdfIsolation: it changes from shared to " +
			"project.*canary; exec.*cold starts, a fee .*no provisioned concurrency, Read docs/upgrade.md"}},
		"a change to one renderer": {account{stack: "UPDATE_COMPLETE"}, topic + "--parameter PdfIsolation=shared", 0,
			[]string{"warning parameter PdfIsolation: it changes from project to shared.*canary, Read"}},
		"a limit below that of WAF": {account{}, topic + "--parameter AddressRequestsPer5Minutes=9", 1,
			[]string{"broken parameter AddressRequestsPer5Minutes: .*below 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.account)
			defer server.Close()
			signIn(t, server.URL)
			args := "preflight --output json --template " + filepath.Join(root, "template.yaml") + " --config-file " +
				filepath.Join(root, "samconfig.toml") + " " + c.args
			out, _ := call{args: args, exit: c.exit, reports: true}.run(t)
			var found []app.Finding
			if err := json.Unmarshal([]byte(out), &found); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			same := slices.EqualFunc(found, c.want, func(f app.Finding, pattern string) bool {
				text := fmt.Sprintf("%s %s %s: %s, %s", f.Severity, f.Check, f.Subject, f.Detail, f.Advice)
				command := !strings.Contains(f.Advice, "aws ") ||
					strings.Contains(f.Advice, " --region eu-west-1 --stack-name svc-prod ")
				return regexp.MustCompile("^"+pattern).MatchString(text) && command && (f.Advice != "" || c.account.refuse != "")
			})
			if !same {
				t.Errorf("found %+v\nwant %+v", found, c.want)
			}
		})
	}

	server := httptest.NewServer(account{})
	defer server.Close()
	signIn(t, server.URL)
	t.Chdir(t.TempDir())
	template := " --template " + filepath.Join(root, "template.yaml")
	if err := os.WriteFile("own.toml",
		[]byte(`prod.deploy.parameters.parameter_overrides = ["KmsKeyArn=''"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	const own, overrides = "preflight --config-file own.toml --parameter ApiBurst=41",
		`--region eu-west-1 --parameter-overrides ApiBurst=41 `
	const whole = `--resolve-s3 --capabilities CAPABILITY_IAM ` + overrides
	call{args: own + template, errs: []string{`sam build --config-env prod && sam deploy --config-env prod ` + overrides +
		`KmsKeyArn="''" Stage=prod\n`}}.run(t)
	call{args: own + " --stage qa" + template,
		errs: []string{`: sam build && sam deploy --stack-name svc-qa ` + whole + `Stage=qa\n`}}.run(t)
	for _, name := range []string{"go", "npm"} {
		must.Succeed(t, os.Remove(filepath.Join(programs, name)))
	}
	for _, c := range []call{
		{args: "preflight --config-file " + filepath.Join(root, "samconfig.toml") + template, exit: 1, reports: true,
			out: []string{"broken +tool +go ", "broken +tool +npm "}},
		{args: "preflight --released --parameter ApiBurst=41" + template, out: []string{"AlarmTopicArn"},
			errs: []string{`sam deploy --template-file \S+ --stack-name svc-prod ` + whole + `Stage=prod\n`}},
		{args: "preflight --released --all" + template,
			out: []string{"ok +tool +sam ", "ok +sign-in ", "ok +stack +svc-prod", "ok +quota +Lambda"}, absent: "npm"},
		{args: "preflight --released", exit: app.ExitUsage, errs: []string{"beside the template"}},
		{args: "preflight" + template, exit: app.ExitUsage, errs: []string{"samconfig.toml"}},
		{args: "preflight --released --parameter x" + template, exit: app.ExitUsage, errs: []string{"NAME=VALUE"}},
		{args: "preflight --local", exit: app.ExitUsage, errs: []string{"not deployed"}},
	} {
		c.run(t)
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	call{args: "preflight --released" + template, exit: 1, reports: true,
		out: []string{`no AWS region +Give --region, .*set AWS_REGION and for sam AWS_DEFAULT_REGION`}}.run(t)
}

// TestProtect: the tables cannot be deleted and can be recovered afterwards, also where DynamoDB refuses recovery at
// first, and a second run changes nothing.
func TestProtect(t *testing.T) {
	p := newFixture(t)
	to, err := url.Parse(enginetest.URL(t))
	p.must(err)
	refused, described := "", 0
	recovery, proxy := map[string]bool{}, proxytest.Buffer(httputil.NewSingleHostReverseProxy(to))
	// DynamoDB Local has no backups.
	server := p.serve(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		refuse := func(code string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"refused"}`, code)
		}
		if described++; operation == "DescribeTable" && described == 3 {
			refuse("ResourceNotFoundException")
			return
		}
		if !strings.HasSuffix(operation, "ContinuousBackups") {
			proxy.ServeHTTP(w, r)
			return
		}
		var asked struct{ TableName string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if operation == "UpdateContinuousBackups" && refused == "" { // as after a restore
			refused = asked.TableName
			refuse("ContinuousBackupsUnavailableException")
			return
		}
		recovery[asked.TableName] = recovery[asked.TableName] || operation == "UpdateContinuousBackups"
		status := map[bool]string{true: "ENABLED", false: "DISABLED"}[recovery[asked.TableName]]
		fmt.Fprintf(w, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED",`+
			`"PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":%q}}}`, status)
	})
	signIn(t, server)
	// The table that the command would protect last is missing: the tables before it stay as they are.
	call{args: "protect --stage " + p.stage, exit: app.ExitFailed,
		errs: []string{"protect svc-" + p.stage + "-ledger: "}}.run(t)
	call{args: "protect --dry-run --stage " + p.stage,
		out: []string{"change the table svc-" + p.stage + "-projects"}}.run(t)
	wait := []string{"svc-" + p.stage + "-projects: .*the next attempt is in 1s"}
	call{args: "protect --stage " + p.stage, out: []string{"(.*switched on +switched on\n){5}$"}, errs: wait}.run(t)
	call{args: "protect --stage " + p.stage, out: []string{"(.*was on +was on\n){5}$"}}.run(t)
	if len(recovery) != 5 {
		t.Errorf("recovery of %v", recovery)
	}
	s := p.stack()
	if _, err := s.DB.DeleteTable(t.Context(),
		&dynamodb.DeleteTableInput{TableName: new(s.Table("ledger"))}); err == nil {
		t.Error("a protected table was deleted")
	}
	for name := range recovery { // so that the fixture can delete them
		_, err := s.DB.UpdateTable(t.Context(),
			&dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: new(false)})
		p.must(err)
	}
	call{args: "protect --stage nowhere", exit: app.ExitFailed,
		errs: []string{"svc-nowhere-projects", "do not exist"}}.run(t)
	call{args: "protect --local", exit: app.ExitUsage, errs: []string{"deletes its tables"}}.run(t)
}
