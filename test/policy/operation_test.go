package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// operationRules are the policies about deploying, protecting and watching the stack.
var operationRules = []rule{
	{"deployments shift traffic and roll back", deployments, []edit{
		{"    AutoPublishAlias: live\n", ""},
		{"      Type: !Ref DeploymentType\n", "      Type: AllAtOnce\n"},
		{"      Role: !GetAtt DeploymentRole.Arn\n", ""},
		{"      AutoPublishAliasAllProperties: true\n", ""},
		{"Alarms: [!Ref SmsCanaryAlarm]", "Alarms: [!Ref ErrorsAlarm]"},
		{"Alarms: [!Ref SmsCanaryAlarm]", "Alarms: [!Ref BarcodeCanaryAlarm]"},
		{"Value: !Sub '${SmsFunction}:live'", "Value: !Sub '${SmsFunction}:dead'"},
		{"      AlarmName: !Sub ${AWS::StackName}-sms-canary-${SmsFunction.Version.Version}\n", ""},
		{"Value: !GetAtt SmsFunction.Version.Version", "Value: !GetAtt PdfFunction.Version.Version"},
		{", {Name: ExecutedVersion, Value: !GetAtt SmsFunction.Version.Version}", ""},
	}},
	{"roles take the boundary, traces and the key", roleSettings, []edit{
		{"      PermissionsBoundary: !If [HasBoundary, !Ref PermissionsBoundaryArn, !Ref AWS::NoValue]\n", ""},
		{"            PermissionsBoundary: !If [HasBoundary, !Ref PermissionsBoundaryArn, !Ref AWS::NoValue]\n", ""},
		{", !If [Traces, !Ref TracePolicy, !Ref AWS::NoValue]", ""},
		{", !If [HasKey, !Ref KeyPolicy, !Ref AWS::NoValue]]", "]"},
		{", !If [HasKey, !Ref KeyPolicy, !Ref AWS::NoValue]]", ", !If [HasKey, !Ref KeyPolicy, !Ref AWS::NoValue], 'arn:aws:iam::aws:policy/AdministratorAccess']"},
		{"Service: lambda.amazonaws.com", "Service: ec2.amazonaws.com"},
		{", !Ref ChargePolicy", ""},
		{"[!Ref RequestPolicy, !If", "[!Ref RequestPolicy, !Ref ChargePolicy, !If"},
	}},
	{"data at rest is encrypted with the operator's key", encryption, []edit{
		{"      KmsKeyId: !If [HasKey, !Ref KmsKeyArn, !Ref AWS::NoValue]\n", ""},
		{"      SSESpecification: !If [HasKey, {SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: !Ref KmsKeyArn}, !Ref AWS::NoValue]\n", ""},
		{"SSEEnabled: true", "SSEEnabled: false"},
		{"Resource: !Ref KmsKeyArn", "Resource: '*'"},
		{"                kms:ViaService:\n", "                kms:ViaServices:\n"},
	}},
	{"the stage is watched", stageAlarms, []edit{
		{"  ErrorsAlarm:\n    Type: AWS::CloudWatch::Alarm", "  ErrorsAlarm:\n    Type: AWS::CloudWatch::CompositeAlarm"},
		{"  LowWalletsAlarm:", "  PoorWalletsAlarm:"},
		{"MetricName: Throttles", "MetricName: Throttle"},
		{"Dimensions: [{Name: FunctionName, Value: !Ref DocsFunction}]", "Dimensions: [{Name: FunctionName, Value: !Ref SmsFunction}]"},
		{"{Name: outcome, Value: insufficient_funds}", "{Name: outcome, Value: success}"},
		{"MetricName: Credits\n", "MetricName: Credits\n      Dimensions:\n        - {Name: operation, Value: sms_send}\n"},
		{"count > ${ApiBurst}", "count > 400"},
		{"{Name: outcome, Value: paused}", "{Name: outcome, Value: refused}"},
		{"Threshold: 22400", "Threshold: 29000"},
		{"ratesync * 28 / 240", "ratesync * 28 / 200"},
	}},
	{"alarms notify and are explained", alarmSettings, []edit{
		{"      AlarmActions: !If [Notifies, [!Ref AlarmTopicArn], !Ref AWS::NoValue]\n", ""},
		{"      AlarmDescription: 'The new version of SMS fails", "      AlarmActions: [!Ref AlarmTopicArn]\n      AlarmDescription: 'The new version of SMS fails"},
		{"Runbook: throttles'", "Runbook: nowhere'"},
		{"Runbook: low-wallets'", "Runbook: throttles'"},
		{"      TreatMissingData: notBreaching\n", ""},
		{"TreatMissingData: ignore", "TreatMissingData: breaching"},
		{"TreatMissingData: ignore", "TreatMissingData: notBreaching"},
		{"'FILL(runs, REPEAT) - FILL(runs, 0)'", "'1 - FILL(runs, 0)'"},
		{"MetricName: UnsettledReservations}", "MetricName: UnsettledReservations, Dimensions: [{Name: operation, Value: sms_send}]}"},
		{"Namespace: !Sub SVC/${Stage}", "Namespace: SVC"},
		{"Namespace: AWS/Lambda", "Namespace: Lambda"},
		{"MetricName: UncertainSends", "MetricName: UncertainSend"},
		{"MetricName: SettleOldest", "MetricName: SettleAge"},
		{"MetricsEnabled: !If [CountsInFull, true, false]", "MetricsEnabled: true"},
		{"Value: unauthorized", "Value: unauthorised"},
		{"Value: guessed", "Value: guesses"},
		{"MetricName: Requests\n      Dimensions: [{Name: outcome", "MetricName: Credits\n      Dimensions: [{Name: outcome"},
		{"        - {Id: unknown, Expression: 'SUM([gateway, known])', ReturnData: false}", "        - {Id: unknown, Expression: 'SUM([gateway, known])'}"},
		{"old, refused, failing", "old, failing"},
		{"MAX([sms, security, ", "MAX([security, "},
	}},
	{"the dashboard covers its questions", dashboards, []edit{
		{`{"markdown": "## Is money right?"}`, `{"markdown": "## Is money left?"}`},
		{"\"${SmsFunction}\\\"", "\"${BarcodeFunction}\\\""},
		{`"${ErrorsAlarm.Arn}"`, `"${SlowAlarm.Arn}"`},
		{`"${ErrorsAlarm.Arn}"`, `"${SmsCanaryAlarm.Arn}"`},
		{`"metrics": [`, `"metrics": [[,`},
		{`MetricName=\"Credits\"`, `MetricName=\"Credit\"`},
		{`"x": 16, "y": 1,`, `"x": 18, "y": 1,`},
	}},
	{"a host name and a web ACL are the operator's choice", domains, []edit{
		{"    Condition: HasDomain\n    Properties:\n      DomainName: !Ref Domain\n", "    Properties:\n      DomainName: !Ref Domain\n"},
		{"      Stage: !Ref Api.Stage\n", "      Stage: !Ref Stage\n"},
		{"SecurityPolicy: TLS_1_2", "SecurityPolicy: TLS_1_0"},
		{"    Condition: HasWebAcl\n", ""},
		{"stages/${Api.Stage}", "stages/${Stage}"},
		{"DisableExecuteApiEndpoint: !If [HasDomain, true, false]", "DisableExecuteApiEndpoint: !If [HasDomain, false, false]"},
		{"      Variables: {host: !If [HasDomain, !Ref DomainName, default]}\n", ""},
		{"    RuleCondition: !Not [!Equals [!Ref CertificateArn, '']]\n", ""},
		{"{Assert: !Not [!Equals [!Ref CertificateArn, '']]", "{Assert: !Not [!Equals [!Ref HostedZoneId, '']]"},
		{"{Assert: !Equals [!Ref AddressRequestsPer5Minutes, 0]", "{Assert: !Equals [!Ref AddressRequestsPer5Minutes, 1]"},
		{"    Condition: HasFirewall\n", ""},
		{"{Name: CrossSiteScripting_BODY, ActionToUse: {Count: {}}}", "{Name: CrossSiteScripting_BODY, ActionToUse: {Block: {}}}"},
		{"                - {Name: NoUserAgent_HEADER, ActionToUse: {Count: {}}}\n", ""},
		{"AggregateKeyType: IP", "AggregateKeyType: FORWARDED_IP"},
		{"SampledRequestsEnabled: false", "SampledRequestsEnabled: true"},
	}},
	{"access logs hold no payload", accessLogs, []edit{
		{"$context.resourcePath", "$context.path"},
		{`"bytes":"$context.responseLength"`, `"bytes":$context.responseLength`},
		{`"ip":"$context.identity.sourceIp",`, `"ip":"$context.identity.sourceIp","agent":"$context.identity.userAgent",`},
		{"    Condition: LogsAccess\n", ""},
		{"        - LogsAccess\n", "        - HasKey\n"},
	}},
	{"conditions are defined and used", conditions, []edit{
		{"  HasZone: !And", "  HasZones: !And"},
		{"    Condition: Traces\n", "    Condition: Tracing\n"},
		{"  Notifies: !Not [!Equals [!Ref AlarmTopicArn, '']]\n", ""},
	}},
}

func TestOperation(t *testing.T) { test(t, operationRules, current(t)) }

const (
	// alias is the alias that the gateway and the schedules call.
	alias = "live"
	// canary ends the names of the alarms that deployments alone watch.
	canary = "CanaryAlarm"
)

func deployments(s *templateFile) (f findings) {
	for _, function := range s.functions() {
		p := function.properties
		stem := strings.TrimSuffix(function.id, "Function")
		if p.text("AutoPublishAlias") != alias || p["AutoPublishAliasAllProperties"] != true {
			f.add("%s: no version is published under %s for every change", function.id, alias)
		}
		if ref(p.at("DeploymentPreference", "Type")) != "DeploymentType" {
			f.add("%s: the way of deployment is not the environment's", function.id)
		}
		if role := p.list("DeploymentPreference", "Role", "Fn::GetAtt"); fmt.Sprint(role) != "[DeploymentRole Arn]" {
			f.add("%s: CodeDeploy works with SAM's role, which gets no boundary", function.id)
		}
		alarms := p.list("DeploymentPreference", "Alarms")
		if len(alarms) != 1 || ref(alarms[0]) != stem+canary {
			f.add("%s: a deployment is rolled back for %v, want the new version's errors", function.id, alarms)
		}
		// A version that is replaced may fail: the alarm counts those of the version that the alias gets.
		want := []string{"AWS/Lambda Errors Sum FunctionName=" + function.id + " Resource=${" + function.id + "}:" + alias +
			" ExecutedVersion=" + function.id + ".Version.Version"}
		watching := resource{properties: s.doc.object("Resources", stem+canary, "Properties")}
		// The state of an alarm outlives a change of its dimensions: each version has an alarm of its own.
		if name := watching.properties.text("AlarmName", "Fn::Sub"); !strings.HasSuffix(name, "-"+function.folder()+"-canary-${"+function.id+".Version.Version}") {
			f.add("%s%s is called %q, and is not a new alarm for each version", stem, canary, name)
		}
		if got := watched(watching); !slices.Equal(got, want) {
			f.add("%s%s watches %q, want %q", stem, canary, got, want)
		}
	}
	return f
}

// branch is {"Fn::If": [condition, then, AWS::NoValue]}: its then, nil where value is anything else.
func branch(value any, condition string) any {
	inner, _ := value.(object)
	parts := inner.list("Fn::If")
	if len(parts) != 3 || parts[0] != condition || ref(parts[2]) != "AWS::NoValue" {
		return nil
	}
	return parts[1]
}

// shared are the functions that have the rights of a managed policy of the template, besides those of traces and the key.
var shared = map[string][]string{
	"RequestPolicy": {"sms", "security", "location", "barcode", "currency", "pdf"},
	"ChargePolicy":  {"sms", "security", "location", "barcode", "pdf"},
}

func roleSettings(s *templateFile) (f findings) {
	bounded := func(where string, value any) {
		if ref(branch(value, "HasBoundary")) != "PermissionsBoundaryArn" {
			f.add("%s does not take the permissions boundary", where)
		}
	}
	for _, role := range s.resources("AWS::IAM::Role") {
		bounded(role.id, role.properties["PermissionsBoundary"])
	}
	for _, function := range s.functions() {
		role := s.role(function)
		var got, want []string
		for _, item := range role.properties.list("ManagedPolicyArns") {
			got = append(got, ref(item)+ref(branch(item, "Traces"))+ref(branch(item, "HasKey")))
		}
		for _, policy := range []string{"RequestPolicy", "ChargePolicy"} {
			if slices.Contains(shared[policy], function.folder()) {
				want = append(want, policy)
			}
		}
		if function.id != rendererID {
			want = append(want, "TracePolicy", "KeyPolicy")
		}
		if !slices.Equal(got, want) {
			f.add("%s has the managed policies %v, want %v", role.id, got, want)
		}
		trust := role.properties.list("AssumeRolePolicyDocument", "Statement")
		if len(trust) != 1 || !strings.Contains(fmt.Sprint(trust[0]), "Principal:map[Service:lambda.amazonaws.com]") {
			f.add("%s trusts %v, want Lambda alone", role.id, trust)
		}
		for _, event := range function.events("ScheduleV2") {
			bounded(function.id+": the role of its schedule", event["PermissionsBoundary"])
		}
	}
	return f
}

func encryption(s *templateFile) (f findings) {
	for _, group := range s.resources("AWS::Logs::LogGroup") {
		if ref(branch(group.properties["KmsKeyId"], "HasKey")) != "KmsKeyArn" {
			f.add("%s does not take the key", group.id)
		}
	}
	for _, table := range s.resources("AWS::DynamoDB::Table") {
		sse, _ := branch(table.properties["SSESpecification"], "HasKey").(object)
		if sse["SSEEnabled"] != true || sse.text("SSEType") != "KMS" || ref(sse["KMSMasterKeyId"]) != "KmsKeyArn" {
			f.add("%s does not take the key", table.id)
		}
	}
	for _, item := range s.doc.list("Resources", "KeyPolicy", "Properties", "PolicyDocument", "Statement") {
		statement, _ := item.(object)
		via := statement.list("Condition", "StringEquals", "kms:ViaService")
		if ref(statement["Resource"]) != "KmsKeyArn" || statement.text("Action") != "kms:Decrypt" || len(via) != 2 {
			f.add("KeyPolicy permits more than to decrypt with the key through two services")
		}
	}
	return f
}

// declaredOperation is an operation in a function's code, from its name to its decoder.
var declaredOperation = regexp.MustCompile(`(?s)Name:\s*"([a-z_]+)",\s*Method:.*?Decode:`)

// operations returns the operations by their names, as metrics carry them, and whether each has a price.
var operations = sync.OnceValue(func() map[string]bool {
	paid := map[string]bool{}
	files, _ := filepath.Glob(root("functions", "*", "*.go"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, match := range declaredOperation.FindAllSubmatch(text, -1) {
			if !strings.HasSuffix(file, "_test.go") {
				paid[string(match[1])] = strings.Contains(string(match[0]), "Price: ")
			}
		}
	}
	return paid
})

// watched lists the metrics of an alarm as namespace, name, dimensions and statistic.
func watched(alarm resource) (metrics []string) {
	one := func(m object, statistic string) {
		namespace := m.text("Namespace") + m.text("Namespace", "Fn::Sub")
		var dimensions []string
		for _, item := range m.list("Dimensions") {
			d, _ := item.(object)
			version, _ := d.at("Value", "Fn::GetAtt").([]any)
			value := ref(d["Value"]) + d.text("Value", "Fn::Sub") + d.text("Value") + strings.ReplaceAll(strings.Trim(fmt.Sprint(version), "[]"), " ", ".")
			dimensions = append(dimensions, d.text("Name")+"="+value)
		}
		metrics = append(metrics, strings.Join(append([]string{namespace, m.text("MetricName"), statistic}, dimensions...), " "))
	}
	p := alarm.properties
	if p["MetricName"] != nil {
		one(p, p.text("Statistic")+p.text("ExtendedStatistic"))
	}
	for _, item := range p.list("Metrics") {
		m, _ := item.(object)
		if stat := m.object("MetricStat"); stat != nil {
			one(stat.object("Metric"), stat.text("Stat"))
		}
	}
	return metrics
}

// stageAlarms: these alarms watch the stage, and each watches all of its metrics.
func stageAlarms(s *templateFile) (f findings) {
	own := "SVC/${Stage} "
	byOutcome := func(outcomes ...string) (metrics []string) {
		for _, outcome := range outcomes {
			metrics = append(metrics, own+"Requests Sum outcome="+outcome)
		}
		return metrics
	}
	gateway := func(name string) string { return "AWS/ApiGateway " + name + " Sum ApiName=AWS::StackName Stage=Stage" }
	want := map[string][]string{
		"Failures":               byOutcome("error"),
		"GatewayErrors":          append(byOutcome("error", "vendor_failed", "unavailable", "uncertain", "paused"), gateway("5XXError")),
		"GatewayThrottled":       append(byOutcome("unauthorized", "insufficient_funds", "throttled", "refused"), gateway("Count"), gateway("4XXError")),
		"VendorFailures":         byOutcome("vendor_failed", "unavailable"),
		"AuthenticationFailures": byOutcome("unauthorized"),
		"CreditsSpent":           {own + "Credits Sum"},
		"Guessing":               byOutcome("guessed"),
		"LowWallets":             {own + "LowWallets Maximum", own + "DailyLimitsNear Sum"},
		"UnusualSpending":        {own + "UnusualSpending Maximum"},
		"UncertainSends":         {own + "UncertainSends Sum", own + "OutcomesNotKept Sum", own + "SettledUncertain Sum"},
		"Unsettled":              {own + "UnsettledReservations Sum", own + "SettleFailed Sum", own + "SettleOldest Maximum"},
		"SettleSilent":           {own + "SettleFailed SampleCount"},
		"Rates":                  {own + "RatesAge Maximum", own + "RatesRefused Sum", own + "RatesFailed Sum"},
		"RatesSilent":            {own + "RatesFailed SampleCount"},
	}
	for _, table := range s.resources("AWS::DynamoDB::Table") {
		for _, metric := range []string{"ReadThrottleEvents", "WriteThrottleEvents"} {
			want["TablesThrottled"] = append(want["TablesThrottled"], "AWS/DynamoDB "+metric+" Sum TableName="+table.id)
		}
	}
	globals, _ := s.doc.at("Globals", "Function", "Timeout").(int)
	slow := s.doc.object("Resources", "SlowAlarm", "Properties")
	for _, function := range s.functions() {
		for kind, metric := range map[string]string{"Errors": "Errors Sum", "Throttles": "Throttles Sum", "Slow": "Duration p99"} {
			want[kind] = append(want[kind], "AWS/Lambda "+metric+" FunctionName="+function.id)
		}
		if seconds, _ := function.properties["Timeout"].(int); seconds != globals {
			scaled := fmt.Sprintf("Expression:%s * %d / %d ", function.folder(), globals, seconds)
			if !strings.Contains(fmt.Sprint(slow.list("Metrics")), scaled) {
				f.add("SlowAlarm does not scale the %d s of %s", seconds, function.id)
			}
		}
	}
	throttled := fmt.Sprint(s.doc.list("Resources", "GatewayThrottledAlarm", "Properties", "Metrics"))
	if !strings.Contains(throttled, "Fn::Sub:IF(count > ${ApiBurst}, unknown, 0)") {
		f.add("GatewayThrottledAlarm does not ask for more requests than the gateway's bucket holds")
	}
	if slow["Threshold"] != globals*800 {
		f.add("SlowAlarm rings at %v ms, want 80 %% of %d s", slow["Threshold"], globals)
	}
	for _, alarm := range s.resources("AWS::CloudWatch::Alarm") {
		stem := strings.TrimSuffix(alarm.id, "Alarm")
		if strings.HasSuffix(alarm.id, canary) {
			continue
		}
		got := watched(alarm)
		slices.Sort(got)
		slices.Sort(want[stem])
		if !slices.Equal(got, want[stem]) {
			f.add("%s watches %q, want %q", alarm.id, got, want[stem])
		}
		delete(want, stem)
	}
	for stem := range want {
		f.add("there is no %sAlarm", stem)
	}
	return f
}

// The namespaces of AWS's own metrics that alarms use, with the metrics. The product's are those that the code prints.
var awsMetrics = map[string][]string{
	"AWS/ApiGateway": {"4XXError", "5XXError", "Count"},
	"AWS/DynamoDB":   {"ReadThrottleEvents", "WriteThrottleEvents"},
	"AWS/Lambda":     {"Duration", "Errors", "Throttles"},
}

var (
	chapter       = regexp.MustCompile(`Runbook: ([a-z-]+)$`)
	mathID        = regexp.MustCompile(`\b[a-z]\w*\b`)
	printedMetric = regexp.MustCompile(`Name: "([A-Za-z_]+)", Unit:[^\n]*?(?:By: \[\]string\{([^}]*)\}[^\n]*)?\n|state\.metric\("([A-Za-z]+)"\)`)
	quotedName    = regexp.MustCompile(`"([a-z_]+)"`)
)

// ownMetrics returns the metrics that the functions print, each with the dimensions that count it; "" is the stage.
var ownMetrics = sync.OnceValue(func() map[string][]string {
	metrics := map[string][]string{}
	for _, folder := range []string{"functions", "shared"} {
		_ = filepath.WalkDir(root(folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range printedMetric.FindAllSubmatch(text, -1) {
				by, names := string(match[2]), string(match[1])+string(match[3])
				var dimensions []string
				if by == "" || strings.Contains(by, "telemetry.ByStage") {
					dimensions = []string{""}
				}
				for _, name := range quotedName.FindAllStringSubmatch(by, -1) {
					dimensions = append(dimensions, name[1])
				}
				metrics[names] = dimensions
			}
			return err
		})
	}
	return metrics
})

// outcomes are the values of the dimension "outcome": the texts of its file that no other purpose has.
var outcomes = sync.OnceValue(func() (names []string) {
	text, _ := os.ReadFile(root("shared", "api", "log.go"))
	_, text, _ = bytes.Cut(text, []byte("var outcomes ="))
	text, _, _ = bytes.Cut(text, []byte("// maxPayload"))
	for _, match := range regexp.MustCompile(`(?:: |return |\boutcome[A-Z]\w* += )"([a-z_]+)"`).FindAllSubmatch(text, -1) {
		names = append(names, string(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
})

func alarmSettings(s *templateFile) (f findings) {
	runbook, err := os.ReadFile(root("docs", "runbook.md"))
	if err != nil {
		f.add("%v", err)
	}
	own := ownMetrics()
	chapters, explained := map[string]bool{}, map[string]bool{}
	for _, item := range s.doc.list("Resources", "Api", "Properties", "MethodSettings") {
		setting, _ := item.(object)
		if got := fmt.Sprint(setting.list("MetricsEnabled", "Fn::If")); got != "[CountsInFull true false]" {
			f.add("the gateway counts by method, which costs and which nothing reads: %s", got)
		}
	}
	for line := range strings.Lines(string(runbook)) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			chapters[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = true // as its link
		}
	}
	for _, alarm := range s.resources("AWS::CloudWatch::Alarm") {
		p := alarm.properties
		if p["TreatMissingData"] == nil {
			f.add("%s does not say what no data means", alarm.id)
		}
		for _, action := range []string{"AlarmActions", "OKActions"} {
			topics, _ := branch(p[action], "Notifies").([]any)
			switch notifies := len(topics) == 1 && ref(topics[0]) == "AlarmTopicArn"; {
			case strings.HasSuffix(alarm.id, canary) && p[action] != nil:
				f.add("%s: deployments alone watch it, and it has %s", alarm.id, action)
			case !strings.HasSuffix(alarm.id, canary) && !notifies:
				f.add("%s: %s is not the topic", alarm.id, action)
			}
		}
		if match := chapter.FindStringSubmatch(p.text("AlarmDescription")); match != nil {
			explained[match[1]] = true
			if !chapters[match[1]] {
				f.add("%s: docs/runbook.md has no chapter %s", alarm.id, match[1])
			}
		} else if !strings.HasSuffix(alarm.id, canary) {
			f.add("%s: the description %q names no chapter of docs/runbook.md", alarm.id, p.text("AlarmDescription"))
		}
		f = append(f, mathematics(alarm)...)
		metrics := watched(alarm)
		if len(metrics) == 0 || len(metrics) > 10 {
			f.add("%s watches %d metrics, want 1 to 10", alarm.id, len(metrics))
		}
		for _, metric := range metrics {
			namespace, rest, _ := strings.Cut(metric, " ")
			name, rest, _ := strings.Cut(rest, " ")
			_, dimensions, _ := strings.Cut(rest, " ")
			by, outcome, _ := strings.Cut(dimensions, "=")
			switch {
			case namespace != "SVC/${Stage}" && !slices.Contains(awsMetrics[namespace], name),
				namespace == "SVC/${Stage}" && !slices.Contains(own[name], by):
				f.add("%s watches %s, which nothing prints", alarm.id, metric)
			case by == "outcome" && !slices.Contains(outcomes(), outcome):
				f.add("%s watches %s, which no response has", alarm.id, metric)
			}
		}
		// A new stack has no data. An alarm of silence needs a run before, and stays where there is nothing at all.
		silence := strings.HasSuffix(alarm.id, "SilentAlarm")
		if silence != strings.Contains(fmt.Sprint(p["Metrics"]), "Expression:FILL(runs, REPEAT) - FILL(runs, 0)") ||
			p.text("TreatMissingData") != map[bool]string{true: "ignore", false: "notBreaching"}[silence] {
			f.add("%s may ring before the first run, or never", alarm.id)
		}
	}
	for title := range chapters {
		if !explained[title] {
			f.add("docs/runbook.md has the chapter %s, which no alarm names", title)
		}
	}
	return f
}

// mathematics checks that an alarm takes one value from its metrics and uses each metric.
func mathematics(alarm resource) (f findings) {
	ids, used, returned, all := map[string]bool{}, map[string]bool{}, 0, false
	for _, item := range alarm.properties.list("Metrics") {
		m, _ := item.(object)
		ids[m.text("Id")] = true
		if m["ReturnData"] != false {
			returned++
			used[m.text("Id")] = true
		}
		expression := m.text("Expression") + m.text("Expression", "Fn::Sub")
		for _, id := range mathID.FindAllString(expression, -1) {
			used[id] = true
		}
		all = all || strings.Contains(expression, "METRICS()")
	}
	if len(ids) > 0 && returned != 1 {
		f.add("%s returns %d values", alarm.id, returned)
	}
	if !all && !maps.Equal(ids, used) {
		f.add("%s has the metrics %v and uses %v", alarm.id, ids, used)
	}
	return f
}

// The questions of the dashboard, each a heading.
var questions = []string{"Is it up?", "Is it fast?", "Is money right?", "Which vendor fails?"}

var searched = regexp.MustCompile(`MetricName=\\"([A-Za-z_]+)\\"`)

// widget holds the checked fields of a dashboard's widget.
type widget struct {
	X, Y, Width, Height int
	Properties          struct{ Markdown string }
}

func dashboards(s *templateFile) (f findings) {
	found := s.resources("AWS::CloudWatch::Dashboard")
	if len(found) != 1 {
		f.add("%d dashboards, want one", len(found))
		return f
	}
	text := found[0].properties.text("DashboardBody", "Fn::Sub")
	var body struct{ Widgets []widget }
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		f.add("the dashboard is no JSON: %v", err)
		return f
	}
	taken := map[[2]int]bool{}
	for _, w := range body.Widgets {
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				if taken[[2]int{x, y}] || x >= 24 {
					f.add("a widget at %d, %d overlaps another or is outside", w.X, w.Y)
				}
				taken[[2]int{x, y}] = true
			}
		}
	}
	for _, question := range questions {
		if !slices.ContainsFunc(body.Widgets, func(w widget) bool { return w.Properties.Markdown == "## "+question }) {
			f.add("the dashboard does not ask %q", question)
		}
	}
	// Each widget by function shows every function, and the dashboard shows each alarm of the stage.
	for _, function := range s.functions() {
		if strings.Count(text, "FunctionName=(") != strings.Count(text, "\"${"+function.id+"}\\\"") {
			f.add("a widget by function does not show %s", function.id)
		}
	}
	for _, alarm := range s.resources("AWS::CloudWatch::Alarm") {
		if shown := strings.Count(text, "\"${"+alarm.id+".Arn}\"") == 1; shown == strings.HasSuffix(alarm.id, canary) {
			f.add("the dashboard shows %s: %v", alarm.id, shown)
		}
	}
	known := ownMetrics()
	for _, match := range searched.FindAllStringSubmatch(text, -1) {
		if known[match[1]] == nil && !slices.Contains(awsMetrics["AWS/Lambda"], match[1]) {
			f.add("the dashboard shows %s, which nothing prints", match[1])
		}
	}
	return f
}

func domains(s *templateFile) (f findings) {
	all := s.doc.object("Resources")
	for id, condition := range map[string]string{
		"Domain": "HasDomain", "DomainMapping": "HasDomain", "DomainRecord": "HasZone", "WebAcl": "HasWebAcl",
		"Firewall": "HasFirewall", "FirewallAssociation": "HasFirewall",
	} {
		if got := all.text(id, "Condition"); got != condition {
			f.add("%s has the condition %q, want %q", id, got, condition)
		}
	}
	if all.text("Domain", "Properties", "SecurityPolicy") != "TLS_1_2" {
		f.add("Domain takes old TLS")
	}
	// By the stage's reference all come after the stage.
	if ref(all.at("DomainMapping", "Properties", "Stage")) != "Api.Stage" {
		f.add("the host name does not refer to the API's stage")
	}
	for _, association := range s.resources("AWS::WAFv2::WebACLAssociation") {
		if !strings.HasSuffix(association.properties.text("ResourceArn", "Fn::Sub"), "/restapis/${Api}/stages/${Api.Stage}") {
			f.add("%s does not refer to the API's stage", association.id)
		}
	}
	api := all.object("Api", "Properties")
	if endpoint := fmt.Sprint(api.list("DisableExecuteApiEndpoint", "Fn::If")); endpoint != "[HasDomain true false]" {
		f.add("with a host name the default endpoint is not switched off: %s", endpoint)
	}
	// "Disable the default endpoint for REST APIs" (API Gateway developer guide): a setting of the stage has to change.
	if !strings.Contains(fmt.Sprint(api["Variables"]), "[HasDomain map[Ref:DomainName] default]") {
		f.add("the stage does not change with the host name, so that the default endpoint stays: %v", api["Variables"])
	}
	for name, needs := range map[string]string{"DomainName": "CertificateArn", "CertificateArn": "DomainName", "HostedZoneId": "DomainName"} {
		filled := func(name string) string { return "map[Fn::Not:[map[Fn::Equals:[map[Ref:" + name + "] ]]]]" }
		rule := s.doc.object("Rules", name)
		if fmt.Sprint(rule["RuleCondition"]) != filled(name) || !strings.Contains(fmt.Sprint(rule["Assertions"]), "Assert:"+filled(needs)) {
			f.add("%s without %s is not refused: %v", name, needs, rule)
		}
	}
	if own := fmt.Sprint(s.doc.at("Rules", "WebAclArn", "Assertions")); !strings.Contains(own, "[map[Ref:AddressRequestsPer5Minutes] 0]") {
		f.add("two web ACLs are not refused: %s", own)
	}
	return append(f, firewall(all.object("Firewall", "Properties"))...)
}

// counted are the rules of AWSManagedRulesCommonRuleSet that would block the API's own requests: bodies of up to 4 MiB,
// HTML in bodies, and programs without a User-Agent (AWS WAF developer guide, "Baseline rule groups").
var counted = []string{
	"NoUserAgent_HEADER", "SizeRestrictions_BODY", "CrossSiteScripting_BODY", "GenericLFI_BODY", "GenericRFI_BODY", "EC2MetaDataSSRF_BODY",
}

// firewall checks the web ACL of the template.
func firewall(p object) (f findings) {
	text := fmt.Sprint(p["Rules"])
	if strings.Contains(fmt.Sprint(p), "SampledRequestsEnabled:true") {
		f.add("the web ACL samples requests, and with them the headers that hold secrets")
	}
	if p.text("Scope") != "REGIONAL" || !strings.Contains(text, "Limit:map[Ref:AddressRequestsPer5Minutes]") || !strings.Contains(text, "AggregateKeyType:IP ") {
		f.add("the web ACL limits no address: %s", text)
	}
	for _, name := range counted {
		if !strings.Contains(text, "map[ActionToUse:map[Count:map[]] Name:"+name+"]") {
			f.add("the web ACL blocks by %s", name)
		}
	}
	return f
}

// loggable are the variables of the gateway that hold nothing that a client chose but its address and the method.
var loggable = []string{
	"error.responseType", "httpMethod", "identity.sourceIp", "requestId", "requestTimeEpoch", "resourcePath", "responseLatency",
	"responseLength", "status", "waf.status",
}

var contextVariable = regexp.MustCompile(`\$context\.([A-Za-z.]+)`)

func accessLogs(s *templateFile) (f findings) {
	if s.doc.text("Resources", "AccessLogGroup", "Condition") != "LogsAccess" {
		f.add("the log group is there without access logs")
	}
	setting, _ := branch(s.doc.at("Resources", "Api", "Properties", "AccessLogSetting"), "LogsAccess").(object)
	format := setting.text("Format")
	for _, match := range contextVariable.FindAllStringSubmatch(format, -1) {
		if !slices.Contains(loggable, match[1]) {
			f.add("access logs hold %s", match[1])
		}
	}
	// A variable without a value is a hyphen, which is JSON between quotes alone.
	filled := contextVariable.ReplaceAllStringFunc(format, func(name string) string {
		if name == "$context.requestTimeEpoch" {
			return "1"
		}
		return "-"
	})
	if line := (object{}); json.Unmarshal([]byte(filled), &line) != nil || line["request_id"] == nil {
		f.add("a line of the access log is no JSON with a request ID: %s", format)
	}
	return f
}

func conditions(s *templateFile) (f findings) {
	defined := s.doc.object("Conditions")
	used := map[string]bool{}
	note := func(name any, where string) {
		used[fmt.Sprint(name)] = true
		if defined[fmt.Sprint(name)] == nil {
			f.add("%s: there is no condition %v", where, name)
		}
	}
	for _, section := range []string{"Globals", "Conditions", "Resources", "Outputs"} {
		walk(s.doc[section], section, func(path, key string, value any) {
			switch value := value.(type) {
			case string:
				if key == "Condition" {
					note(value, path)
				}
			case []any:
				if key == "Fn::If" {
					note(value[0], path)
				}
			}
		})
	}
	for name := range maps.Keys(defined) {
		if !used[name] {
			f.add("the condition %s is not used", name)
		}
	}
	return f
}

// translated is template.yaml as SAM's own translator expands it at deployment, with parameters such as PriceSms=1.
func translated(t *testing.T, parameters ...string) *templateFile {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), ".local/venv/bin/python", append([]string{"tools/translate.py", "template.yaml"}, parameters...)...)
	cmd.Dir = root()
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("SAM's translator (make policy installs it): %v", err)
	}
	s, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// translatedRules are the policies over the translated template. Their edits change the translation.
var translatedRules = []rule{
	{"roles permit what is listed, on what is named", translatedRoles, []edit{
		{"Action: dynamodb:Query", "Action: dynamodb:Querry"},
		{"Action: dynamodb:Query", "Action: '*'"},
		{"arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:svc/${Stage}/sms/*", "'*'"},
		{"policy/service-role/AWSCodeDeployRoleForLambdaLimited", "policy/AdministratorAccess"},
		{"Principal:\n            Service: lambda.amazonaws.com", "Principal: '*'"},
		{"          - Action: lambda:InvokeFunction\n            Effect: Allow\n            Resource:\n              Ref: SettleFunctionAlias" + alias, "          - Action: lambda:InvokeFunction\n            Effect: Allow\n            Resource: '*'"},
		{"        - HasBoundary\n", "        - HasKey\n"},
	}},
	{"every function is published, called and deployed by its alias", translatedFunctions, []edit{
		{"  SmsFunctionAlias" + alias + ":\n", "  SmsFunctionAliasother:\n"},
		{"  SmsFunctionDeploymentGroup:\n", "  SmsDeploymentGroup:\n"},
		{"    Type: AWS::CodeDeploy::DeploymentGroup", "    Type: AWS::CodeDeploy::Group"},
		{"        Ref: SmsFunctionAlias" + alias + "\n      Principal: apigateway.amazonaws.com", "        Ref: SmsFunction\n      Principal: apigateway.amazonaws.com"},
		{"DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP"},
	}},
	{"a scheduled run is repeated at most until the next one", translatedSchedules, []edit{
		{"  SettleFunctionEventInvokeConfig:\n", "  SettleFunctionInvokeConfig:\n"},
		{"MaximumRetryAttempts: 2\n      Qualifier: " + alias, "MaximumRetryAttempts: 2\n      Qualifier: $LATEST"},
		{"MaximumEventAgeInSeconds: 60", "MaximumEventAgeInSeconds: 61"},
		{"MaximumEventAgeInSeconds: 3000", "MaximumEventAgeInSeconds: 21600"},
		{"      MaximumEventAgeInSeconds: 60\n", ""},
		{"      MaximumRetryAttempts: 0\n      Qualifier", "      Qualifier"},
	}},
	{"the gateway takes every route to its function", translatedRoutes, []edit{
		{"/api/v1/sms/send:\n", "/api/v1/sms/sent:\n"},
		{"${SmsFunctionAlias" + alias + "}/invocations", "${SmsFunction}/invocations"},
		{"            x-amazon-apigateway-any-method:", "            post:"},
	}},
}

func TestTranslation(t *testing.T) { test(t, translatedRules, translated(t)) }

// TestParameterPublishes: another value of a parameter of functions is another version of each function, which the alias
// gets, also from a released package. Other parameters, and a default that is given as a value, publish nothing.
func TestParameterPublishes(t *testing.T) {
	t.Parallel()
	published := func(parameters ...string) []string {
		s := translated(t, parameters...)
		var ids []string
		for _, version := range s.resources("AWS::Lambda::Version") {
			function := ref(version.properties["FunctionName"])
			live := s.doc.list("Resources", function+"Alias"+alias, "Properties", "FunctionVersion", "Fn::GetAtt")
			if len(live) != 2 || live[0] != version.id || version.attributes.text("DeletionPolicy") != "Retain" {
				t.Errorf("%v: the alias of %s is %v, not %s, or the version is not kept for a return", parameters, function, live, version.id)
			}
			ids = append(ids, version.id)
		}
		return ids
	}
	before := published()
	if got := published("PriceSms=10000", "ApiBurst=1", "ExpectedCreditsPerHour=7"); !slices.Equal(got, before) {
		t.Errorf("versions are %v and were %v", got, before)
	}
	// The renderer has parameters of its own, and none of the others'.
	for changed, ofRenderer := range map[string]bool{"PriceSms=10001": false, "PdfImageHosts=a.example": true} {
		for _, id := range published(changed) {
			if want := strings.HasPrefix(id, rendererID) == ofRenderer; slices.Contains(before, id) == want {
				t.Errorf("%s: the versions were %v, and now there is %s", changed, before, id)
			}
		}
	}
}

// Every action that any role of the stack may have, of the service authorization reference.
var rolesActions = slices.Concat(tableActions, secretActions, logActions, []string{
	"kms:Decrypt", "lambda:InvokeFunction", "xray:PutTelemetryRecords", "xray:PutTraceSegments", "sts:AssumeRole",
})

// The actions that may have "*" as resource: X-Ray's actions have no resources.
var anywhere = []string{"xray:PutTelemetryRecords", "xray:PutTraceSegments"}

// Who may take a role, and AWS's own policies in use: CodeDeploy's role for Lambda, which CodeDeploy keeps up to date.
var (
	trusted = []string{"codedeploy.amazonaws.com", "lambda.amazonaws.com", "scheduler.amazonaws.com"}
	managed = []string{
		"RequestPolicy", "ChargePolicy", "TracePolicy", "KeyPolicy",
		"arn:${AWS::Partition}:iam::aws:policy/service-role/AWSCodeDeployRoleForLambdaLimited",
	}
)

func translatedRoles(s *templateFile) (f findings) {
	judge := func(id string, document object) {
		for _, item := range document.list("Statement") {
			statement, _ := item.(object)
			if statement.text("Effect") != "Allow" || statement["NotAction"] != nil || statement["NotResource"] != nil {
				f.add("%s: %v", id, statement)
			}
			actions := statement.list("Action")
			for _, action := range actions {
				name, _ := action.(string)
				if !slices.Contains(rolesActions, name) {
					f.add("%s: %v is no action that a role may have", id, action)
				}
				if statement["Principal"] != nil {
					continue
				}
				for _, on := range statement.list("Resource") {
					where, _ := on.(object)
					text, _ := on.(string)
					if text += where.text("Fn::Sub"); (on == nil || strings.HasPrefix(text, "*")) && !slices.Contains(anywhere, name) {
						f.add("%s: %s on %v", id, name, on)
					}
				}
			}
			if len(actions) == 0 || statement["Principal"] == nil && len(statement.list("Resource")) == 0 {
				f.add("%s: a statement without action or resource", id)
			}
			for _, service := range statement.list("Principal") {
				who, _ := service.(object)
				for _, name := range who.list("Service") {
					if text, _ := name.(string); !slices.Contains(trusted, text) {
						f.add("%s trusts %v", id, name)
					}
				}
				if len(who) != 1 || who["Service"] == nil {
					f.add("%s trusts %v", id, service)
				}
			}
		}
	}
	roles := s.resources("AWS::IAM::Role")
	if len(roles) < len(s.resources("AWS::Lambda::Function")) {
		f.add("%d roles for %d functions", len(roles), len(s.resources("AWS::Lambda::Function")))
	}
	for _, role := range roles {
		p := role.properties
		judge(role.id, p.object("AssumeRolePolicyDocument"))
		for _, item := range p.list("Policies") {
			policy, _ := item.(object)
			judge(role.id, policy.object("PolicyDocument"))
		}
		for _, item := range p.list("ManagedPolicyArns") {
			inner, _ := item.(object)
			name := inner.text("Fn::Sub") + ref(item) + ref(branch(item, "Traces")) + ref(branch(item, "HasKey"))
			if !slices.Contains(managed, name) {
				f.add("%s has the managed policy %v", role.id, item)
			}
		}
		if ref(branch(p["PermissionsBoundary"], "HasBoundary")) != "PermissionsBoundaryArn" {
			f.add("%s has no boundary", role.id)
		}
	}
	for _, policy := range s.resources("AWS::IAM::ManagedPolicy") {
		judge(policy.id, policy.properties.object("PolicyDocument"))
	}
	return f
}

func translatedFunctions(s *templateFile) (f findings) {
	all := s.doc.object("Resources")
	for _, function := range s.resources("AWS::Lambda::Function") {
		group := all.object(function.id + "DeploymentGroup")
		if group.text("Type") != "AWS::CodeDeploy::DeploymentGroup" {
			f.add("%s is not deployed by CodeDeploy", function.id)
		}
		if !slices.Contains(group.list("Properties", "AutoRollbackConfiguration", "Events"), any("DEPLOYMENT_STOP_ON_ALARM")) {
			f.add("%s does not go back on an alarm", function.id)
		}
		if all.text(function.id+"Alias"+alias, "Properties", "Name") != alias {
			f.add("%s has no alias %s", function.id, alias)
		}
		calls := 0
		for _, permission := range s.resources("AWS::Lambda::Permission") {
			if ref(permission.properties["FunctionName"]) == function.id {
				f.add("%s: %s is about the function, not its alias", function.id, permission.id)
			}
			if ref(permission.properties["FunctionName"]) == function.id+"Alias"+alias {
				calls++
			}
		}
		for _, schedule := range s.resources("AWS::Scheduler::Schedule") {
			if ref(schedule.properties.at("Target", "Arn")) == function.id+"Alias"+alias {
				calls++
			}
		}
		if calls == 0 && function.id != rendererID { // rendererRights has the function that may
			f.add("%s: nothing may call its alias", function.id)
		}
	}
	return f
}

// period is a schedule of whole minutes or hours.
var period = regexp.MustCompile(`^rate\((\d+) (minute|hour)s?\)$`)

func translatedSchedules(s *templateFile) (f findings) {
	all := s.doc.object("Resources")
	schedules := s.resources("AWS::Scheduler::Schedule")
	if len(schedules) == 0 {
		f.add("there is no schedule")
	}
	for _, schedule := range schedules {
		function := strings.TrimSuffix(ref(schedule.properties.at("Target", "Arn")), "Alias"+alias)
		every := period.FindStringSubmatch(schedule.properties.text("ScheduleExpression"))
		if every == nil {
			f.add("%s: %q", schedule.id, schedule.properties.text("ScheduleExpression"))
			continue
		}
		seconds, _ := strconv.Atoi(every[1])
		seconds *= map[string]int{"minute": 60, "hour": 3600}[every[2]]
		config := all.object(function + "EventInvokeConfig")
		p := config.object("Properties")
		if config.text("Type") != "AWS::Lambda::EventInvokeConfig" || ref(p["FunctionName"]) != function || p.text("Qualifier") != alias {
			f.add("%s: Lambda's own retries are not set for its alias", function)
		}
		retries, set := p["MaximumRetryAttempts"].(int)
		if age, _ := p["MaximumEventAgeInSeconds"].(int); age < 60 || age > seconds {
			f.add("%s: an event may be %d s old, and the next one comes after %d s", function, age, seconds)
		}
		// Lambda waits one minute before the first retry and two before the second.
		if longest := retries * (retries + 1) / 2 * 60; !set || longest >= seconds {
			f.add("%s: %d retries take %d s, and the next event comes after %d s", function, retries, longest, seconds)
		}
	}
	return f
}

func translatedRoutes(s *templateFile) (f findings) {
	written, err := readTemplate()
	if err != nil {
		f.add("%v", err)
		return f
	}
	paths := s.doc.object("Resources", "Api", "Properties", "Body", "paths")
	want := written.routes()
	for path, function := range want {
		to := paths.text(path, "x-amazon-apigateway-any-method", "x-amazon-apigateway-integration", "uri", "Fn::Sub")
		if !strings.Contains(to, "/${"+function+"Alias"+alias+".Arn}/") && !strings.Contains(to, "/${"+function+"Alias"+alias+"}/") {
			f.add("%s goes to %q, want %s", path, to, function)
		}
	}
	if len(paths) != len(want) {
		f.add("the gateway has %d paths, want %d", len(paths), len(want))
	}
	return f
}
