package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"svcapi/cmd/svc/app"
	"svcapi/local/workdir"
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
func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	service := strings.Split(r.Header.Get("Authorization"), "/")[3]
	if service == a.refuse {
		refuse(w, "AccessDeniedException:http://internal")
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
		refuse(w, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException")
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

// signInAt sets the environment of an operator at an AWS account with the tables and the secrets of the fixture.
func (f *fixture) signInAt(a *account) {
	signIn(f.t, serve(f.t, a.ServeHTTP))
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": enginetest.URL(f.t),
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": f.vault.URL, "SVC_STAGE": f.stage} {
		f.t.Setenv(name, value)
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
		must.Succeed(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho "+name+" version 1\n"), 0o755))
	}
	t.Setenv("PATH", programs)
	t.Setenv("SVC_STAGE", "prod")
	const topic = "AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:team "
	const acm = "CertificateArn=arn:aws:acm:us-east-1:123456789012:certificate/1"
	update, left := "UPDATE_COMPLETE", []string{"svc-prod-wallets"}
	type row struct {
		account account
		args    string   // and parameters
		want    []string // each of one finding; a broken one means exit code 1
	}
	on := func(a account, want ...string) row { return row{a, topic, want} }
	with := func(args string, want ...string) row { return row{account{}, topic + args, want} }
	for name, c := range map[string]row{
		"ready":                 with(""),
		"ready for dev":         with("--stage dev"),
		"ready for staging":     with("--stage staging"),
		"a stack to be updated": on(account{stack: update, tables: left}),
		"no topic":              {want: []string{"warning parameter AlarmTopicArn: .*notify no one"}},
		"a table left":          on(account{tables: left}, "broken table svc-prod-wallets: .*ResourceExistenceCheck"),
		"a failed creation":     on(account{stack: "ROLLBACK_COMPLETE"}, "broken stack svc-prod: .*ROLLBACK_COMPLETE"),
		"a state to come":       on(account{stack: "MOVED"}, "broken stack svc-prod: it is MOVED"),
		"a rolled back update":  on(account{stack: "UPDATE_ROLLBACK_COMPLETE"}),
		"a change set":          on(account{stack: "REVIEW_IN_PROGRESS"}, "warning stack svc-prod: .*REVIEW_IN_PROGRESS"),
		"a change set and a table": on(account{stack: "REVIEW_IN_PROGRESS", tables: left},
			"warning stack svc-prod: ", "broken table svc-prod-wallets: "),
		"code for 80 %":     on(account{code: 800}),
		"code above 80 %":   on(account{code: 801}, "warning quota Lambda code storage: 801 of 1000 MiB"),
		"hosts within 4 KB": with(hosts(3000)),
		"hosts above 4 KB": {args: strings.TrimSpace(topic) + strings.Repeat("t", 5000) + " " + hosts(4000), want: []string{
			"broken environment PdfRenderFunction: its variables have 4[0-9]{3} bytes .*4096, Shorten PdfImageHosts "}},
		"at work":                  on(account{stack: "UPDATE_IN_PROGRESS"}, "broken stack svc-prod: .*IN_PROGRESS"),
		"a new account":            on(account{concurrency: 10}, "broken quota Lambda: .*10 functions at once"),
		"too much for PDF":         with("PdfConcurrency=901", "broken quota Lambda: .*PdfConcurrency=901"),
		"as much as allowed":       with("PdfConcurrency=900"),
		"more than Lambda carries": on(account{concurrency: 400}, "warning quota Lambda: .*400 functions"),
		"more than the gateway's":  on(account{rate: 999}, "warning quota API Gateway: .*999 requests"),
		"logs without the role":    with("AccessLogs=on", "broken account API Gateway: .*log role"),
		"logs with the role":       {account{logRole: true}, topic + "AccessLogs=on", nil},
		"no permission":            on(account{refuse: "lambda"}, "broken quota Lambda: .*AccessDenied"),
		"signed out":               on(account{refuse: "sts"}, "broken sign-in AWS: .*who you are"),
		"a fraction": with("PriceSms=1.5 ApiBurst=2.5", "broken parameter ApiBurst: .*an integer",
			"broken parameter PriceSms: .*of the pattern"),
		"out of range":            with("PdfMaxPages=0", "broken parameter PdfMaxPages: .*at least 1"),
		"too much":                with("PdfMaxPages=2001", "broken parameter PdfMaxPages: .*at most 2000"),
		"none of the values":      with("Docs=false", "broken parameter Docs: .*one of on, off"),
		"an unknown parameter":    with("PriceFax=1", "broken parameter PriceFax: .*no such parameter"),
		"half a host name":        with("DomainName=api.example.com", "broken parameters DomainName: .*needs CertificateArn"),
		"a certificate elsewhere": with("DomainName=api.example.com "+acm, "broken parameter CertificateArn: .*us-east-1"),
		"two web ACLs": with("AddressRequestsPer5Minutes=100 "+
			"WebAclArn=arn:aws:wafv2:eu-west-1:123456789012:regional/webacl/a/b", "broken parameters WebAclArn: .*one web ACL"),
		"a topic and an address": with("AlarmEmail=team@example.com",
			"broken parameters AlarmEmail: .*excludes AlarmTopicArn"),
		"an address": {args: "AlarmEmail=team@example.com MonthlyBudgetUsd=200"},
		"a budget and no topic": {args: "MonthlyBudgetUsd=200", want: []string{
			"broken parameters MonthlyBudgetUsd: .*needs AlarmTopicArn", "warning parameter AlarmTopicArn"}},
		"a renderer for each project": on(account{stack: update, parameters: map[string]string{"PdfIsolation": "shared"}},
			"warning parameter PdfIsolation: it changes from shared to project.*canary; exec.*cold starts, a fee "+
				".*no provisioned concurrency, Read docs/upgrade.md"),
		"a change to one renderer": {account{stack: update}, topic + "PdfIsolation=shared", []string{
			"warning parameter PdfIsolation: it changes from project to shared.*canary, Read"}},
		"a limit below that of WAF": with("AddressRequestsPer5Minutes=9",
			"broken parameter AddressRequestsPer5Minutes: .*below 10"),
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
			found := decodeText[[]app.Finding](t, out)
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

	signIn(t, serve(t, new(account).ServeHTTP))
	t.Chdir(t.TempDir())
	template := " --template " + filepath.Join(root, "template.yaml")
	must.Succeed(t, os.WriteFile("own.toml",
		[]byte(`prod.deploy.parameters.parameter_overrides = ["KmsKeyArn=''"]`), 0o600))
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
	finds("preflight --config-file "+filepath.Join(root, "samconfig.toml")+template, "broken +tool +go ",
		"broken +tool +npm ").run(t)
	shows("preflight --released --parameter ApiBurst=41"+template, "AlarmTopicArn").
		notes(`sam deploy --template-file \S+ --stack-name svc-prod ` + whole + `Stage=prod\n`).run(t)
	shows("preflight --released --all"+template, "ok +tool +sam ", "ok +sign-in ", "ok +stack +svc-prod",
		"ok +quota +Lambda").without("npm").run(t)
	misuse("preflight --released", "beside the template").run(t)
	misuse("preflight"+template, "samconfig.toml").run(t)
	misuse("preflight --released --parameter x"+template, "NAME=VALUE").run(t)
	misuse("preflight --local", "not deployed").run(t)
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	finds("preflight --released"+template,
		`no AWS region +Give --region, .*set AWS_REGION and for sam AWS_DEFAULT_REGION`).run(t)
}

// TestProtect: the tables cannot be deleted and can be recovered afterwards, also where DynamoDB refuses recovery at
// first, and a second run changes nothing.
func TestProtect(t *testing.T) {
	p, refused, described, recovery := newFixture(t), "", 0, map[string]bool{}
	// DynamoDB Local has no backups.
	signIn(t, p.between(enginetest.URL(t), func(w http.ResponseWriter, r *http.Request, operation string) bool {
		if described++; operation == "DescribeTable" && described == 3 {
			return refuse(w, "ResourceNotFoundException")
		}
		if !strings.HasSuffix(operation, "ContinuousBackups") {
			return false
		}
		var asked struct{ TableName string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if operation == "UpdateContinuousBackups" && refused == "" { // as after a restore
			refused = asked.TableName
			return refuse(w, "ContinuousBackupsUnavailableException")
		}
		recovery[asked.TableName] = recovery[asked.TableName] || operation == "UpdateContinuousBackups"
		status := map[bool]string{true: "ENABLED", false: "DISABLED"}[recovery[asked.TableName]]
		fmt.Fprintf(w, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED",`+
			`"PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":%q}}}`, status)
		return true
	}, 0))
	// The table that the command would protect last is missing: the tables before it stay as they are.
	fails("protect --stage "+p.stage, "protect svc-"+p.stage+"-ledger: ").run(t)
	shows("protect --dry-run --stage "+p.stage, "change the table svc-"+p.stage+"-projects").run(t)
	shows("protect --stage "+p.stage, "(.*switched on +switched on\n){5}$").
		notes("svc-" + p.stage + "-projects: .*the next attempt is in 1s").run(t)
	shows("protect --stage "+p.stage, "(.*was on +was on\n){5}$").run(t)
	if len(recovery) != 5 {
		t.Errorf("recovery of %v", recovery)
	}
	s := p.stack()
	if _, err := s.DB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: new(s.Table("ledger"))}); err == nil {
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
	a := &account{stack: "UPDATE_COMPLETE", parameters: map[string]string{}}
	newFixture(t).signInAt(a)
	shows("project create Acme --id acme").run(t)
	shows("integration set acme sms aws --mode managed --env both --setting sender~id=Acme").run(t)
	shows("project create Own --id own").run(t)
	shows("integration set own sms aws --mode byok --setting sender~id=Acme --secrets -").
		given(`{"access_key_id":"AKIAEXAMPLE","secret_access_key":"topsecret"}`).run(t)
	shows("project create Number --id number").run(t)
	shows("integration set number sms aws --mode managed --setting sender~id=+94771234567").run(t)
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
	refused("sms test acme aws --to 0771234567",
		`Signed +by arn:aws:iam::123456789012:user/me, your own AWS identity`).run(t)
}

// TestAboveStage: "svc project limits" and "svc doctor" warn about a project's limit that the stage's limits do not let
// through, and about no other (docs/decisions/operating.md#edge).
func TestAboveStage(t *testing.T) {
	a := &account{stack: "UPDATE_COMPLETE", parameters: map[string]string{
		"ApiRequestsPerSecond": "1000", "AddressRequestsPer5Minutes": "10000",
	}}
	newFixture(t).signInAt(a)
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

// TestSilentEndpoint: the whole run ends within 20 s, also where the programs, the source of credentials and each call
// to AWS take their time, and what never responds is in a sentence.
func TestSilentEndpoint(t *testing.T) {
	silent := smithyhttp.ClientDoFunc(func(r *http.Request) (*http.Response, error) { // accepts requests, never responds
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: silent,
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
