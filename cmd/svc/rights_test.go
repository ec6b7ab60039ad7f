package main

import (
	"net/http"
	"strings"
	"testing"

	"svcapi/cmd/svc/app"
	"svcapi/test/enginetest"
)

// TestManagedRight: a Managed integration without secret fields needs a right of the function's role. "svc integration
// check" and "svc doctor" report an absent right, "svc sms test" the signer
// (docs/decisions/operating.md#managed-without-secret).
func TestManagedRight(t *testing.T) {
	const sender = "arn:aws:sms-voice:eu-west-1:123456789012:sender-id/Acme/LK"
	f, a := newFixture(t), account{stack: "UPDATE_COMPLETE", parameters: map[string]string{}}
	signIn(t, f.serve(func(w http.ResponseWriter, r *http.Request) { a.ServeHTTP(w, r) }))
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", enginetest.URL(t))
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", f.vault.URL)
	t.Setenv("SVC_STAGE", f.stage)
	for _, c := range []call{
		{args: "project create Acme --id acme"},
		{args: "integration set acme sms aws --mode managed --env both --setting sender~id=Acme"},
		{args: "project create Own --id own"},
		{args: "integration set own sms aws --mode byok --setting sender~id=Acme --secrets -",
			stdin: `{"access_key_id":"AKIAEXAMPLE","secret_access_key":"topsecret"}`},
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
	out, _ := call{args: "doctor --all", exit: 1, reports: true, out: []string{
		`broken +right +acme development/sms/aws +` + lacks + `.*docs/sms.md`, `warning +right +number .*phone number`,
	}}.run(t)
	if strings.Count(out, lacks) != 1 {
		t.Errorf("doctor names an identity more than once:\n%s", out)
	}
	a.refuse = "cloudformation"
	check("acme", 0, `ok +integration +\S+/aws +complete; .*the right of the function's role was not checked: `)
	a.refuse = ""
	a.parameters["SmsOriginationIdentityArns"] = "arn:aws:sms-voice:eu-west-1:123456789012:pool/pool-1," + sender
	check("acme", 0, `ok +integration +development/sms/aws +complete`, `ok +integration +production/sms/aws +complete`)
	if out, _ := (call{args: "doctor --all", exit: 1, reports: true}).run(t); strings.Contains(out, lacks) {
		t.Errorf("doctor reports a right that the role has:\n%s", out)
	}
	test := call{args: "sms test acme aws --to 0771234567", exit: app.ExitRefused}
	test.errs = []string{`Signed +by arn:aws:iam::123456789012:user/me, your own AWS identity`}
	test.run(t)
}

// TestAboveStage: "svc project limits" and "svc doctor" warn about a project's limit that the stage's limits do not let
// through, and about no other (docs/decisions/operating.md#edge).
func TestAboveStage(t *testing.T) {
	f, a := newFixture(t), account{stack: "UPDATE_COMPLETE", parameters: map[string]string{
		"ApiRequestsPerSecond": "1000", "AddressRequestsPer5Minutes": "10000",
	}}
	signIn(t, f.serve(func(w http.ResponseWriter, r *http.Request) { a.ServeHTTP(w, r) }))
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
		out, _ := call{args: "doctor", exit: 1, reports: true}.run(t)
		if strings.Contains(out, "requests a second are above") != (warning != "") {
			t.Errorf("%s: doctor says %s", requests, out)
		}
	}
	a.parameters["AddressRequestsPer5Minutes"], a.parameters["ApiRequestsPerSecond"] = "0", "3000"
	if _, errs := (call{args: "project limits acme --requests 180000"}).run(t); strings.Contains(errs, "Warning") {
		t.Errorf("a limit that the stage has was warned about: %s", errs)
	}
}
