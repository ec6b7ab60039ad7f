package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"svcapi/cmd/svc/app"
	"svcapi/local/workdir"
	"svcapi/test/conntest"
	"svcapi/test/enginetest"
	"svcapi/test/must"
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
	return "PdfImageHosts=" + strings.Repeat("a.example,", length/10-1) + "a.example0 "
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
	const topic = "AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:team "
	const acm = "CertificateArn=arn:aws:acm:us-east-1:123456789012:certificate/1"
	update, left := "UPDATE_COMPLETE", []string{"svc-prod-wallets"}
	one := account{stack: update, parameters: map[string]string{"PdfIsolation": "shared"}}
	type found []string // each of one finding; a broken one means exit code 1
	for name, c := range map[string]struct {
		account account
		args    string // and parameters
		want    found
	}{
		"ready":                 {args: topic},
		"ready for dev":         {args: topic + "--stage dev"},
		"ready for staging":     {args: topic + "--stage staging"},
		"a stack to be updated": {account: account{stack: update, tables: left}, args: topic},
		"no topic":              {want: found{"warning parameter AlarmTopicArn: .*notify no one"}},
		"a table left": {account{tables: left}, topic,
			found{"broken table svc-prod-wallets: .*ResourceExistenceCheck"}},
		"a failed creation": {account{stack: "ROLLBACK_COMPLETE"}, topic, found{
			"broken stack svc-prod: .*ROLLBACK_COMPLETE"}},
		"a state to come":      {account{stack: "MOVED"}, topic, found{"broken stack svc-prod: it is MOVED"}},
		"a rolled back update": {account{stack: "UPDATE_ROLLBACK_COMPLETE"}, topic, nil},
		"a change set": {account{stack: "REVIEW_IN_PROGRESS"}, topic, found{
			"warning stack svc-prod: .*REVIEW_IN_PROGRESS"}},
		"a change set and a table": {account{stack: "REVIEW_IN_PROGRESS", tables: left}, topic, found{
			"warning stack svc-prod: ", "broken table svc-prod-wallets: "}},
		"code for 80 %":     {account{code: 800}, topic, nil},
		"code above 80 %":   {account{code: 801}, topic, found{"warning quota Lambda code storage: 801 of 1000 MiB"}},
		"hosts within 4 KB": {account{}, topic + hosts(3000), nil},
		"hosts above 4 KB": {account{}, strings.TrimSpace(topic) + strings.Repeat("t", 5000) + " " + hosts(4000),
			found{"broken environment PdfRenderFunction: its variables have 4[0-9]{3} bytes .*4096, Shorten PdfImageHosts "}},
		"at work": {account{stack: "UPDATE_IN_PROGRESS"}, topic,
			found{"broken stack svc-prod: .*IN_PROGRESS"}},
		"a new account": {account{concurrency: 10}, topic, found{"broken quota Lambda: .*10 functions at once"}},
		"too much for PDF": {account{}, topic + "PdfConcurrency=901",
			found{"broken quota Lambda: .*PdfConcurrency=901"}},
		"as much as allowed":       {account{}, topic + "PdfConcurrency=900", nil},
		"more than Lambda carries": {account{concurrency: 400}, topic, found{"warning quota Lambda: .*400 functions"}},
		"more than the gateway's":  {account{rate: 999}, topic, found{"warning quota API Gateway: .*999 requests"}},
		"logs without the role":    {account{}, topic + "AccessLogs=on", found{"broken account API Gateway: .*log role"}},
		"logs with the role":       {account{logRole: true}, topic + "AccessLogs=on", nil},
		"no permission":            {account{refuse: "lambda"}, topic, found{"broken quota Lambda: .*AccessDenied"}},
		"signed out":               {account{refuse: "sts"}, topic, found{"broken sign-in AWS: .*who you are"}},
		"a fraction": {account{}, topic + "PriceSms=1.5 ApiBurst=2.5", found{
			"broken parameter ApiBurst: .*an integer", "broken parameter PriceSms: .*of the pattern"}},
		"out of range": {account{}, topic + "PdfMaxPages=0", found{"broken parameter PdfMaxPages: .*at least 1"}},
		"too much": {account{}, topic + "PdfMaxPages=2001",
			found{"broken parameter PdfMaxPages: .*at most 2000"}},
		"none of the values":   {account{}, topic + "Docs=false", found{"broken parameter Docs: .*one of on, off"}},
		"an unknown parameter": {account{}, topic + "PriceFax=1", found{"broken parameter PriceFax: .*no such parameter"}},
		"half a host name": {account{}, topic + "DomainName=api.example.com", found{
			"broken parameters DomainName: .*needs CertificateArn"}},
		"a certificate elsewhere": {account{}, topic + "DomainName=api.example.com " + acm, found{
			"broken parameter CertificateArn: .*us-east-1"}},
		"two web ACLs": {account{}, topic +
			"AddressRequestsPer5Minutes=100 WebAclArn=arn:aws:wafv2:eu-west-1:123456789012:regional/webacl/a/b",
			found{"broken parameters WebAclArn: .*one web ACL"}},
		"a topic and an address": {account{}, topic + "AlarmEmail=team@example.com", found{
			"broken parameters AlarmEmail: .*excludes AlarmTopicArn"}},
		"an address": {account{}, "AlarmEmail=team@example.com MonthlyBudgetUsd=200", nil},
		"a budget and no topic": {account{}, "MonthlyBudgetUsd=200", found{
			"broken parameters MonthlyBudgetUsd: .*needs AlarmTopicArn", "warning parameter AlarmTopicArn"}},
		"a renderer for each project": {one, topic, found{"warning parameter PdfIsolation: it changes from shared to " +
			"project.*canary; exec.*cold starts, a fee .*no provisioned concurrency, Read docs/upgrade.md"}},
		"a change to one renderer": {account{stack: update}, topic + "PdfIsolation=shared", found{
			"warning parameter PdfIsolation: it changes from project to shared.*canary, Read"}},
		"a limit below that of WAF": {account{}, topic + "AddressRequestsPer5Minutes=9", found{
			"broken parameter AddressRequestsPer5Minutes: .*below 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			signIn(t, serve(t, c.account.ServeHTTP))
			args := "preflight --output json --template " + filepath.Join(root, "template.yaml") + " --config-file " +
				filepath.Join(root, "samconfig.toml")
			for word := range strings.FieldsSeq(c.args) {
				args += map[bool]string{true: " --parameter"}[strings.Contains(word, "=")] + " " + word
			}
			broken := slices.ContainsFunc(c.want, func(p string) bool { return strings.HasPrefix(p, "broken") })
			out, _ := call{args: args, exit: map[bool]int{true: app.ExitFailed}[broken], reports: true}.run(t)
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

	signIn(t, serve(t, account{}.ServeHTTP))
	t.Chdir(t.TempDir())
	template := " --template " + filepath.Join(root, "template.yaml")
	if err := os.WriteFile("own.toml",
		[]byte(`prod.deploy.parameters.parameter_overrides = ["KmsKeyArn=''"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	const own, overrides = "preflight --config-file own.toml --parameter ApiBurst=41",
		`--region eu-west-1 --parameter-overrides ApiBurst=41 `
	const whole = `--resolve-s3 --capabilities CAPABILITY_IAM ` + overrides
	shows(own + template).notes(`sam build --config-env prod && sam deploy --config-env prod ` + overrides +
		`KmsKeyArn="''" Stage=prod\n`).run(t)
	shows(own + " --stage qa" + template).notes(`: sam build && sam deploy --stack-name svc-qa ` + whole +
		`Stage=qa\n`).run(t)
	for _, name := range []string{"go", "npm"} {
		must.Succeed(t, os.Remove(filepath.Join(programs, name)))
	}
	for _, c := range []call{
		finds("preflight --config-file "+filepath.Join(root, "samconfig.toml")+template, "broken +tool +go ",
			"broken +tool +npm "),
		shows("preflight --released --parameter ApiBurst=41"+template, "AlarmTopicArn").
			notes(`sam deploy --template-file \S+ --stack-name svc-prod ` + whole + `Stage=prod\n`),
		shows("preflight --released --all"+template, "ok +tool +sam ", "ok +sign-in ", "ok +stack +svc-prod",
			"ok +quota +Lambda").without("npm"),
		misuse("preflight --released", "beside the template"),
		misuse("preflight"+template, "samconfig.toml"),
		misuse("preflight --released --parameter x"+template, "NAME=VALUE"),
		misuse("preflight --local", "not deployed"),
	} {
		c.run(t)
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	finds("preflight --released"+template,
		`no AWS region +Give --region, .*set AWS_REGION and for sam AWS_DEFAULT_REGION`).run(t)
}

// TestProtect: the tables cannot be deleted and can be recovered afterwards, also where DynamoDB refuses recovery at
// first, and a second run changes nothing.
func TestProtect(t *testing.T) {
	p := newFixture(t)
	to, err := url.Parse(enginetest.URL(t))
	p.must(err)
	refused, described := "", 0
	recovery, proxy := map[string]bool{}, conntest.Buffer(httputil.NewSingleHostReverseProxy(to))
	// DynamoDB Local has no backups.
	signIn(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	}))
	// The table that the command would protect last is missing: the tables before it stay as they are.
	fails("protect --stage "+p.stage, "protect svc-"+p.stage+"-ledger: ").run(t)
	shows("protect --dry-run --stage "+p.stage, "change the table svc-"+p.stage+"-projects").run(t)
	wait := []string{"svc-" + p.stage + "-projects: .*the next attempt is in 1s"}
	call{args: "protect --stage " + p.stage, out: []string{"(.*switched on +switched on\n){5}$"}, errs: wait}.run(t)
	shows("protect --stage "+p.stage, "(.*was on +was on\n){5}$").run(t)
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
	fails("protect --stage nowhere", "svc-nowhere-projects", "do not exist").run(t)
	misuse("protect --local", "deletes its tables").run(t)
}

// TestManagedRight: a Managed integration without secret fields needs a right of the function's role. "svc integration
// check" and "svc doctor" report an absent right, "svc sms test" the signer
// (docs/decisions/operating.md#managed-without-secret).
func TestManagedRight(t *testing.T) {
	const sender = "arn:aws:sms-voice:eu-west-1:123456789012:sender-id/Acme/LK"
	f, a := newFixture(t), account{stack: "UPDATE_COMPLETE", parameters: map[string]string{}}
	signIn(t, serve(t, func(w http.ResponseWriter, r *http.Request) { a.ServeHTTP(w, r) }))
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", enginetest.URL(t))
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f.vault.URL)
	t.Setenv("SVC_STAGE", f.stage)
	for _, c := range []call{
		{args: "project create Acme --id acme"},
		{args: "integration set acme sms aws --mode managed --env both --setting sender~id=Acme"},
		{args: "project create Own --id own"},
		shows("integration set own sms aws --mode byok --setting sender~id=Acme --secrets -").
			given(`{"access_key_id":"AKIAEXAMPLE","secret_access_key":"topsecret"}`),
		{args: "project create Number --id number"},
		{args: "integration set number sms aws --mode managed --setting sender~id=+94771234567"},
	} {
		c.run(t)
	}
	const lacks = "the role of the function lacks sms-voice:SendTextMessage on " + sender
	check := func(project string, exit int, patterns ...string) {
		t.Helper()
		call{args: "integration check " + project, exit: exit, reports: true, out: patterns}.run(t)
	}
	check("acme", 1, `broken +integration +development/sms/aws +`+lacks, `broken +integration +production/sms/aws +`+lacks)
	check("own", 0, `ok +integration +\S+/aws`)
	check("number", 0, `ok +integration +\S+/aws +.*was not checked: sender_id is a phone number`)
	out, _ := finds("doctor --all", `broken +right +acme development/sms/aws +`+lacks+`.*docs/sms.md`,
		`warning +right +number .*phone number`).run(t)
	if strings.Count(out, lacks) != 1 {
		t.Errorf("doctor names an identity more than once:\n%s", out)
	}
	a.refuse = "cloudformation"
	check("acme", 0, `ok +integration +\S+/aws +complete; .*the right of the function's role was not checked: `)
	a.refuse = ""
	a.parameters["SmsOriginationIdentityArns"] = "arn:aws:sms-voice:eu-west-1:123456789012:pool/pool-1," + sender
	check("acme", 0, `ok +integration +development/sms/aws +complete`, `ok +integration +production/sms/aws +complete`)
	if out, _ := (finds("doctor --all")).run(t); strings.Contains(out, lacks) {
		t.Errorf("doctor reports a right that the role has:\n%s", out)
	}
	test := refused("sms test acme aws --to 0771234567")
	test.errs = []string{`Signed +by arn:aws:iam::123456789012:user/me, your own AWS identity`}
	test.run(t)
}

// TestAboveStage: "svc project limits" and "svc doctor" warn about a project's limit that the stage's limits do not let
// through, and about no other (docs/decisions/operating.md#edge).
func TestAboveStage(t *testing.T) {
	f, a := newFixture(t), account{stack: "UPDATE_COMPLETE", parameters: map[string]string{
		"ApiRequestsPerSecond": "1000", "AddressRequestsPer5Minutes": "10000",
	}}
	signIn(t, serve(t, func(w http.ResponseWriter, r *http.Request) { a.ServeHTTP(w, r) }))
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", enginetest.URL(t))
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f.vault.URL)
	t.Setenv("SVC_STAGE", f.stage)
	call{args: "project create Acme --id acme"}.run(t)
	for requests, warning := range map[string]string{
		"2000": "", // 33.3 a second, as the web ACL has them
		"2001": `Warning: 33.35 requests a second are above AddressRequestsPer5Minutes=10000, which is 33.33 a second ` +
			`for one`,
		"180000": `Warning: 3000 requests a second are above ApiRequestsPerSecond=1000, which is 1000 a second for all ` +
			`projects`,
	} {
		_, errs := call{args: "project limits acme --requests " + requests}.run(t)
		if (warning == "") == strings.Contains(errs, "Warning") || !strings.Contains(errs, warning) {
			t.Errorf("%s: %q, want %q", requests, errs, warning)
		}
		out, _ := finds("doctor").run(t)
		if strings.Contains(out, "requests a second are above") != (warning != "") {
			t.Errorf("%s: doctor says %s", requests, out)
		}
	}
	a.parameters["AddressRequestsPer5Minutes"], a.parameters["ApiRequestsPerSecond"] = "0", "3000"
	if _, errs := (call{args: "project limits acme --requests 180000"}).run(t); strings.Contains(errs, "Warning") {
		t.Errorf("a limit that the stage has was warned about: %s", errs)
	}
}

// silent is an endpoint that accepts each request and never responds.
type silent struct{}

// Do implements aws.HTTPClient.
func (silent) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestSilentEndpoint: the whole run ends within 20 s, also where the programs, the source of credentials and each call
// to AWS take their time, and what never responds is in a sentence.
func TestSilentEndpoint(t *testing.T) {
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: silent{},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	hangs := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	knows := func(context.Context) (string, error) { return "me", nil }
	for want, c := range map[string]struct {
		opens time.Duration
		actor func(context.Context) (string, error)
	}{
		"the source of your AWS credentials":  {time.Minute, knows},
		"AWS STS":                             {14 * time.Second, hangs},
		"CloudFormation, Lambda, API Gateway": {0, knows},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &preflightOptions{App: &app.App{}, template: "../../template.yaml", config: "../../samconfig.toml"}
			o.output = func(ctx context.Context, _, _ string) ([]byte, error) { _, err := hangs(ctx); return nil, err }
			began := time.Now()
			o.open = func(ctx context.Context) (*app.Stack, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(c.opens):
					return &app.Stack{App: o.App, AWS: cfg, DB: dynamodb.NewFromConfig(cfg),
						Actor: func(ctx context.Context) (string, error) {
							if waited := time.Since(began); waited != c.opens {
								t.Errorf("the calls to AWS began after %s, want %s", waited, c.opens)
							}
							return c.actor(ctx)
						}}, nil
				}
			}
			f, _, err := o.check(t.Context())
			var silent []string
			for _, found := range f.Found {
				if service, ok := strings.CutSuffix(found.Detail, " did not respond in time"); ok && found.Check != "tool" &&
					found.Advice != "" {
					silent = append(silent, service)
				}
			}
			if took := time.Since(began); err != nil || strings.Join(silent, ", ") != want || took > 20*time.Second {
				t.Errorf("after %s %v %+v, want %s within 20 s", took, err, f.Found, want)
			}
		})
	}
}
