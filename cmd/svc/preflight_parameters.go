package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"svcapi/cmd/svc/app"
)

// definition is one parameter of the template.
type definition struct {
	Type           string   `yaml:"Type"`
	Default        string   `yaml:"Default"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	Constraint     string   `yaml:"ConstraintDescription"`
	AllowedValues  []string `yaml:"AllowedValues"`
	MinValue       *float64 `yaml:"MinValue"`
	MaxValue       *float64 `yaml:"MaxValue"`
}

// parameters are the parameters of a deployment.
type parameters struct {
	defined map[string]definition
	set     map[string]string // what the file and the flags set
	from    string            // where they were read
	inFile  bool              // samconfig.toml has the stage

	variables map[string]map[string]yaml.Node // of each function, by its logical ID
}

// value returns what the stack gets.
func (p parameters) value(name string) string {
	if v, ok := p.set[name]; ok {
		return v
	}
	return p.defined[name].Default
}

func (p parameters) number(name string) float64 {
	n, _ := strconv.ParseFloat(p.value(name), 64)
	return n
}

// override is NAME=VALUE in the text form of samconfig.toml, where a value with spaces has quotes.
var override = regexp.MustCompile(`([A-Za-z0-9]+)=("[^"]*"|'[^']*'|\S*)`)

// parameters reads the definitions of the template, and the values of the stage and of the flags.
func (o *preflightOptions) parameters() (parameters, error) {
	text, err := os.ReadFile(o.template)
	if err != nil {
		return parameters{}, app.Usagef("%v: run svc preflight beside the template, or give --template", err)
	}
	type function struct {
		Environment struct {
			Variables map[string]yaml.Node `yaml:"Variables"`
		} `yaml:"Environment"`
	}
	var template struct {
		Parameters map[string]definition `yaml:"Parameters"`
		Globals    struct {
			Function function `yaml:"Function"`
		} `yaml:"Globals"`
		Resources map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		return parameters{}, app.Usagef("%s: %v", o.template, err)
	}
	p := parameters{defined: template.Parameters, set: map[string]string{}, from: "--parameter"}
	p.variables = map[string]map[string]yaml.Node{}
	for id, resource := range template.Resources {
		if resource.Type != "AWS::Serverless::Function" {
			continue
		}
		var own function
		if err := resource.Properties.Decode(&own); err != nil {
			return parameters{}, app.Usagef("%s: %s: %v", o.template, id, err)
		}
		p.variables[id] = maps.Clone(template.Globals.Function.Environment.Variables)
		maps.Copy(p.variables[id], own.Environment.Variables)
	}
	var config map[string]any
	_, err = toml.DecodeFile(o.config, &config)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.released: // a package need not have the file
	case err != nil:
		return parameters{}, app.Usagef("%s: %v", o.config, err)
	case config[o.Stage] != nil:
		p.from, p.inFile = o.config+" ["+o.Stage+"]", true
		maps.Copy(p.set, stageOverrides(config, o.Stage))
	}
	for _, text := range o.given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return parameters{}, app.Usagef("--parameter is NAME=VALUE, not %q", text)
		}
		p.set[name] = value
	}
	if p.set["Stage"] == "" {
		p.set["Stage"] = o.Stage
	}
	return p, nil
}

// stageOverrides returns parameter_overrides of one environment in the configuration of sam, a list or one text.
func stageOverrides(config map[string]any, stage string) map[string]string {
	at := func(of any, key string) any {
		inner, _ := of.(map[string]any)
		return inner[key]
	}
	set := map[string]string{}
	switch list := at(at(at(config[stage], "deploy"), "parameters"), "parameter_overrides").(type) {
	case []any:
		for _, item := range list {
			if name, value, ok := strings.Cut(fmt.Sprint(item), "="); ok {
				set[name] = strings.Trim(value, `"'`)
			}
		}
	case string:
		for _, match := range override.FindAllStringSubmatch(list, -1) {
			set[match[1]] = strings.Trim(match[2], `"'`)
		}
	}
	return set
}

// checkParameters checks each value as CloudFormation does, then the combinations.
func (f *flight) checkParameters(p parameters) {
	before := len(f.Found)
	for _, name := range slices.Sorted(maps.Keys(p.set)) {
		d, ok := p.defined[name]
		if !ok {
			f.Add(app.Broken, "parameter", name, "the template has no such parameter", "Correct the name in "+p.from+".")
			continue
		}
		if problem := d.problem(p.set[name]); problem != "" {
			f.Add(app.Broken, "parameter", name, fmt.Sprintf("it is %q, and has to be %s", p.set[name], problem),
				"Correct it in "+p.from+".")
		}
	}
	f.combinations(p)
	f.environments(p)
	f.AddIf(len(f.Found) == before, app.OK, "parameters", p.from, "", "")
}

// environmentMost is the most bytes that Lambda accepts for the variables of a function, measured as a JSON object
// ("Lambda quotas", Environment variables).
const environmentMost = 4096

// environments checks that the variables of each function fit with these parameters.
func (f *flight) environments(p parameters) {
	for _, id := range slices.Sorted(maps.Keys(p.variables)) {
		values, used := map[string]string{}, map[string]bool{}
		for name, node := range p.variables[id] {
			values[name] = p.resolve(&node, used)
		}
		text, _ := json.Marshal(values) // texts alone
		if len(text) <= environmentMost {
			continue
		}
		longest := ""
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if len(p.value(name)) > len(p.value(longest)) {
				longest = name
			}
		}
		f.Add(app.Broken, "environment", id,
			fmt.Sprintf("its variables have %d bytes with these parameters, and Lambda accepts %d", len(text), environmentMost),
			"Shorten "+longest+" in "+p.from+".")
	}
}

var placeholder = regexp.MustCompile(`\$\{([A-Za-z0-9]+)\}`)

// resolve returns the value of a variable: a text, a reference to a parameter, or a text with such references, in the
// short or, in a packaged template, in the long form. The names to which the variable refers are added to used.
func (p parameters) resolve(n *yaml.Node, used map[string]bool) string {
	tag := strings.TrimPrefix(n.Tag, "!")
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		tag, n = strings.TrimPrefix(n.Content[0].Value, "Fn::"), n.Content[1]
	}
	switch tag {
	case "Ref":
		used[n.Value] = true
		return p.value(n.Value)
	case "Sub":
		return placeholder.ReplaceAllStringFunc(n.Value, func(found string) string {
			name := found[2 : len(found)-1]
			used[name] = true
			return p.value(name)
		})
	}
	return n.Value
}

// problem returns what a value has to be, and nothing for a value that the template accepts and the functions can read.
func (d definition) problem(value string) string {
	if len(d.AllowedValues) > 0 && !slices.Contains(d.AllowedValues, value) {
		return "one of " + strings.Join(d.AllowedValues, ", ")
	}
	if pattern, err := regexp.Compile(d.AllowedPattern); err != nil || !pattern.MatchString(value) {
		if d.Constraint != "" {
			return d.Constraint
		}
		return "of the pattern " + d.AllowedPattern
	}
	if d.Type != "Number" {
		return ""
	}
	// CloudFormation takes fractions, which no variable of a function is.
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return "an integer"
	case d.MinValue != nil && float64(number) < *d.MinValue:
		return fmt.Sprintf("at least %.0f", *d.MinValue)
	case d.MaxValue != nil && float64(number) > *d.MaxValue:
		return fmt.Sprintf("at most %.0f", *d.MaxValue)
	}
	return ""
}

// combinations checks what one parameter needs of another. The template's Rules refuse these and two web ACLs as well.
func (f *flight) combinations(p parameters) {
	for _, c := range []struct{ name, needs string }{
		{"DomainName", "CertificateArn"}, {"CertificateArn", "DomainName"}, {"HostedZoneId", "DomainName"},
	} {
		lacks := p.value(c.name) != "" && p.value(c.needs) == ""
		f.AddIf(lacks, app.Broken, "parameters", c.name, "it needs "+c.needs, "Set both, or neither.")
	}
	address := p.number("AddressRequestsPer5Minutes")
	switch {
	case address > 0 && p.value("WebAclArn") != "":
		f.Add(app.Broken, "parameters", "WebAclArn",
			"an API has one web ACL, and AddressRequestsPer5Minutes creates another", "Set one of both.")
	case address > 0 && address < 10:
		f.Add(app.Broken, "parameter", "AddressRequestsPer5Minutes", "AWS WAF takes no limit below 10",
			"Set 10 or more, or 0 for no web ACL.")
	}
	topic, email := p.value("AlarmTopicArn") != "", p.value("AlarmEmail") != ""
	f.AddIf(topic && email, app.Broken, "parameters", "AlarmEmail", "it excludes AlarmTopicArn", "Set one of both.")
	f.AddIf(!topic && !email && p.value("MonthlyBudgetUsd") != "", app.Broken, "parameters", "MonthlyBudgetUsd",
		"it needs AlarmTopicArn or AlarmEmail", "Set one of both, or no budget.")
	f.AddIf(!topic && !email, app.Warning, "parameter", "AlarmTopicArn", "without a topic the alarms notify no one",
		"Set the ARN of an SNS topic that your team reads, or an address in AlarmEmail.")
}
