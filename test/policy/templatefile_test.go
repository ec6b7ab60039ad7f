// Package policy holds the rules that the compiler, sam validate, cfn-lint, Redocly and the acceptance tests do not
// check: over template.yaml as SAM translates it, openapi.yaml, the events, and which package may import which. It has
// tests only; this file reads the files that they check.
package policy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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

	"go.yaml.in/yaml/v3"

	"svcapi/test/must"
)

// root is a path inside the repository.
func root(elements ...string) string {
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, elements...)...))
	if err != nil {
		panic(err)
	}
	return path
}

// read returns the text of a file inside the repository.
func read(elements ...string) string {
	text, err := os.ReadFile(root(elements...))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// kinds are the extensions of the texts that the policies read.
var kinds = []string{".go", ".md", ".yaml", ".yml", ".mk", ".js"}

// files are the texts of the repository by path, with the manifests. Hidden folders and those of packages are left out.
var files = sync.OnceValue(func() map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir(root(), func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case path == root():
		case entry.IsDir() && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist"):
			return fs.SkipDir
		case slices.Contains(kinds, filepath.Ext(name)) || manifests[name] != "":
			below, _ := filepath.Rel(root(), path)
			found[filepath.ToSlash(below)] = read(below)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return found
})

var productFile = regexp.MustCompile(`^(functions|shared)/.*\.go$`)

// product has the syntax of the files of the functions and of shared/ by path, without tests.
var product = sync.OnceValue(func() map[string]*ast.File {
	parsed := map[string]*ast.File{}
	for name, text := range files() {
		if !productFile.MatchString(name) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		parsed[name] = syntax
	}
	return parsed
})

// object is a YAML mapping. An intrinsic is one too: {"Ref": "Stage"}.
type object map[string]any

// templateFile is template.yaml as SAM's own translator expands it at deployment.
type templateFile struct{ doc object }

// resource is one resource of a stack.
type resource struct {
	id         string
	kind       string
	attributes object // DeletionPolicy, Metadata and their like
	properties object
}

// rendererID is the function that runs the browser.
const rendererID = "PdfRenderFunction"

// resolverID is the function that resolves uncertain sends.
const resolverID = "SmsResolveFunction"

// ownAlarms are the scheduled functions whose work has an alarm of its own, UncertainSendsAlarm and ListsAlarm.
var ownAlarms = []string{resolverID, "SecurityListsyncFunction"}

// run runs a tool in a folder and returns its standard output.
func run(folder, name string, arguments ...string) ([]byte, error) {
	cmd := exec.Command(name, arguments...)
	var failure bytes.Buffer
	cmd.Dir, cmd.Stderr = folder, &failure
	output, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %q (make policy installs the tools): %w\n%s%s", name, arguments, err, failure.String(), output)
	}
	return output, err
}

// tool runs a tool that has to succeed, and returns its standard output.
func tool(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	output, err := run(folder, name, arguments...)
	must.Succeed(t, err)
	return string(output)
}

// translate runs SAM's translator with each set of parameters such as PriceSms=1.
func translate(sets ...[]string) []string {
	arguments := []string{"tools/translate.py", "template.yaml"}
	for i, parameters := range sets {
		if i > 0 {
			arguments = append(arguments, "--")
		}
		arguments = append(arguments, parameters...)
	}
	texts, err := run(root(), ".local/venv/bin/python", arguments...)
	if err != nil {
		panic(err)
	}
	return strings.Split(string(texts), "\n---\n")
}

// parse reads a translated template.
func parse(text string) *templateFile {
	s := &templateFile{}
	if err := yaml.Unmarshal([]byte(text), &s.doc); err != nil {
		panic(err)
	}
	return s
}

// hashed is the logical ID of a version or a layer: a hash of its content is its end.
var hashed = regexp.MustCompile(`\b(\w+FunctionVersion|ChromiumLayer)[0-9a-f]{10}\b`)

// translated is the text of template.yaml, translated, with "@NAME@" as the value of each parameter, where SAM resolves
// one, and logical IDs without hashes.
var translated = sync.OnceValue(func() string {
	var written struct {
		Parameters map[string]yaml.Node `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal([]byte(read("template.yaml")), &written); err != nil {
		panic(err)
	}
	var values []string
	for _, name := range slices.Sorted(maps.Keys(written.Parameters)) {
		values = append(values, name+"=@"+name+"@")
	}
	return hashed.ReplaceAllString(translate(values)[0], "$1")
})

// current is template.yaml, translated.
var current = sync.OnceValue(func() *templateFile { return parse(translated()) })

// compiled are the patterns of matches, because the tests repeat the rules for each change of the template.
var compiled sync.Map

// matches reports whether a pattern matches a whole text.
func matches(pattern, text string) bool {
	known, ok := compiled.Load(pattern)
	if !ok {
		known, _ = compiled.LoadOrStore(pattern, regexp.MustCompile("^(?:"+pattern+")$"))
	}
	return known.(*regexp.Regexp).MatchString(text)
}

// at follows keys into nested mappings and lists; nil where one is absent.
func at(value any, keys ...string) any {
	for _, key := range keys {
		switch inner := value.(type) {
		case object:
			value = inner[key]
		case map[string]any: // of JSON
			value = inner[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(inner) {
				return nil
			}
			value = inner[i]
		default:
			return nil
		}
	}
	return value
}

// object is the mapping at keys, empty where there is none.
func (o object) object(keys ...string) object {
	value, _ := at(o, keys...).(object)
	return value
}

// list is the list at keys. One value counts as a list of itself.
func (o object) list(keys ...string) []any {
	switch value := at(o, keys...).(type) {
	case nil:
		return nil
	case []any:
		return value
	default:
		return []any{value}
	}
}

// text is the value at keys as show writes it, empty where there is none.
func (o object) text(keys ...string) string { return show(at(o, keys...)) }

// names are a mapping's keys in order.
func (o object) names() []string { return slices.Sorted(maps.Keys(o)) }

// show writes a value in one line: ${NAME} and ${ID.ATTRIBUTE} for references, "CONDITION ? THEN : ELSE" for Fn::If,
// "-" for AWS::NoValue.
func show(value any) string {
	texts := func(list []any) (out []string) {
		for _, item := range list {
			out = append(out, show(item))
		}
		return out
	}
	switch value := value.(type) {
	case nil:
		return ""
	case []any:
		return "[" + strings.Join(texts(value), ", ") + "]"
	case object:
		for name, inner := range value {
			list, _ := inner.([]any)
			switch {
			case len(value) > 1:
			case name == "Ref" && inner == "AWS::NoValue":
				return "-"
			case name == "Ref":
				return "${" + show(inner) + "}"
			case name == "Fn::GetAtt":
				return "${" + strings.Join(texts(list), ".") + "}"
			case name == "Fn::If":
				return fmt.Sprintf("%s ? %s : %s", list[0], show(list[1]), show(list[2]))
			case name == "Fn::Sub" && list == nil:
				return show(inner)
			case name == "Fn::Sub":
				text, _ := list[0].(string)
				for variable, with := range list[1].(object) {
					text = strings.ReplaceAll(text, "${"+variable+"}", show(with))
				}
				return text
			}
		}
		var out []string
		for _, name := range value.names() {
			out = append(out, name+": "+show(value[name]))
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	return fmt.Sprint(value)
}

// resources are the resources of one type, of all types where kind is empty, by logical ID.
func (s *templateFile) resources(kind string) (out []resource) {
	for _, id := range s.doc.object("Resources").names() {
		if r := s.resource(id); kind == "" || r.kind == kind {
			out = append(out, r)
		}
	}
	return out
}

// resource is the resource of a logical ID.
func (s *templateFile) resource(id string) resource {
	r := s.doc.object("Resources", id)
	return resource{id, r.text("Type"), r, r.object("Properties")}
}

// functions are the stack's functions.
func (s *templateFile) functions() []resource { return s.resources("AWS::Lambda::Function") }

// ends are the ends of logical IDs that name what a function has.
var ends = regexp.MustCompile(`(Function(DeploymentGroup|Aliaslive|Version|EventInvokeConfig)?|LogGroup|Role|CanaryAlarm)$`)

// stem is the logical ID of a function without "Function", also for its role, log group, alarm and deployment.
func (r resource) stem() string { return ends.ReplaceAllString(r.id, "") }

// folder is the name of a function in events, logs and alarms.
func (r resource) folder() string { return strings.ToLower(r.stem()) }

// served matches the function that a route is integrated with.
var served = regexp.MustCompile(`\$\{(\w+)Aliaslive\}`)

// routes maps the path of every route to the function that serves its alias.
func (s *templateFile) routes() map[string]string {
	out := map[string]string{}
	paths := s.doc.object("Resources", "Api", "Properties", "Body", "paths")
	for path := range paths {
		uri := paths.text(path, "x-amazon-apigateway-any-method", "x-amazon-apigateway-integration", "uri")
		if match := served.FindStringSubmatch(uri); match != nil {
			out[path] = match[1]
		}
	}
	return out
}

var substitution = regexp.MustCompile(`\$\{([A-Za-z0-9]+)\}`)

// referred returns the names that a value refers to.
func referred(in any) map[string]bool {
	used := map[string]bool{}
	for _, match := range substitution.FindAllStringSubmatch(show(in), -1) {
		used[match[1]] = true
	}
	return used
}

// watched lists the metrics of an alarm as namespace, name, statistic and dimensions.
func watched(alarm resource) (metrics []string) {
	one := func(m object, statistic string) {
		words := []string{m.text("Namespace"), m.text("MetricName"), statistic}
		for _, d := range m.list("Dimensions") {
			words = append(words, show(at(d, "Name"))+"="+show(at(d, "Value")))
		}
		metrics = append(metrics, strings.Join(words, " "))
	}
	if p := alarm.properties; p["MetricName"] != nil {
		one(p, p.text("Statistic")+p.text("ExtendedStatistic"))
	}
	for _, item := range alarm.properties.list("Metrics") {
		if stat, ok := at(item, "MetricStat").(object); ok {
			one(stat.object("Metric"), stat.text("Stat"))
		}
	}
	slices.Sort(metrics)
	return metrics
}
