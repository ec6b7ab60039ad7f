package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// status is the result of a mutant's tests.
type status string

const (
	killed    status = "KILLED"     // a test failed
	timedOut  status = "TIMED OUT"  // the tests did not end, which counts as noticed
	lived     status = "LIVED"      // every test passed
	notViable status = "NOT VIABLE" // the change does not compile
)

// mutant is one change of one file.
type mutant struct {
	place  string // the file and the function
	line   string // without indentation, with the change marked
	path   string
	text   string // the file's text with the change
	status status
}

func (m mutant) key() string { return m.place + "\n" + m.line }

// operators are the replacements for each token of Go. The operators of bits are left out: no target works on bits.
var operators = map[token.Token][]token.Token{
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.GEQ: {token.GTR, token.LSS}, token.GTR: {token.GEQ, token.LEQ},
	token.LEQ: {token.LSS, token.GTR}, token.LSS: {token.LEQ, token.GEQ},
	token.INC: {token.DEC}, token.DEC: {token.INC},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.BREAK: {token.CONTINUE}, token.CONTINUE: {token.BREAK},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, token.ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN, token.ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN, token.ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN, token.ASSIGN},
	token.REM_ASSIGN: {token.ASSIGN},
}

var (
	updatePattern    = regexp.MustCompile(`^(SET|REMOVE|ADD|DELETE) `)
	conditionPattern = regexp.MustCompile(`attribute_(not_)?exists\(|begins_with\(|\w (=|<>|<|<=|>|>=) ` +
		`$|(=|<>|<|<=|>|>=) :\w|BETWEEN :|^ (AND|OR) $`)
)

// rule replaces each match of a pattern in an expression. $0 and $1 are the match and its first group.
type rule struct {
	pattern *regexp.Regexp
	to      []string
}

const (
	always  = "attribute_not_exists(nowhere)" // a condition that always holds
	operand = `[\w.#:]+`                      // a path, a name or a value
)

var conditionRules = []rule{
	{regexp.MustCompile(`<>`), []string{"="}},
	{regexp.MustCompile(`>=`), []string{">"}},
	{regexp.MustCompile(`<=`), []string{"<"}},
	{regexp.MustCompile(` < `), []string{" <= "}},
	{regexp.MustCompile(` > `), []string{" >= "}},
	{regexp.MustCompile(` = `), []string{" <> "}},
	{regexp.MustCompile(`attribute_exists`), []string{"attribute_not_exists"}},
	{regexp.MustCompile(`attribute_not_exists`), []string{"attribute_exists"}},
	{regexp.MustCompile(` OR `), []string{" AND "}},
	// A term of a condition that always holds has the effect of a missing term, and DynamoDB accepts its names and values.
	{regexp.MustCompile(operand + ` (=|<>|<=|<|>=|>) ` + operand + `|attribute_(not_)?exists\(` + operand +
		`\)|begins_with\([^)]*\)`), []string{"($0 OR " + always + ")"}},
	{regexp.MustCompile(`(` + operand + `) BETWEEN (:\w+) AND (:\w+)`), []string{
		"($0 OR " + always + ")", "($0 OR $1 < $2)", "($0 OR $1 > $3)", "($0 AND $1 > $2)", "($0 AND $1 < $3)",
	}},
}

var updateRules = []rule{
	{regexp.MustCompile(` \+ `), []string{" - "}},
	{regexp.MustCompile(` - `), []string{" + "}},
	// An update of another attribute has the effect of a missing update.
	{regexp.MustCompile(`(` + operand + `)( = )`), []string{"nowhere$2"}},
	{regexp.MustCompile(`((?:ADD|REMOVE|DELETE) )(` + operand + `)`), []string{"${1}nowhere"}},
	{regexp.MustCompile(`if_not_exists\((` + operand + `), (` + operand + `)\)`), []string{"$1", "$2"}},
}

// and finds the conjunctions, and the BETWEEN … AND … whose AND is none.
var and = regexp.MustCompile(`BETWEEN :\w+ AND| AND `)

// replacement puts another text at a place of a text.
type replacement struct {
	at, end int
	to      string
}

func (r replacement) apply(text string) string { return text[:r.at] + r.to + text[r.end:] }

func (r replacement) mark(text string) string {
	return strings.TrimSpace(text[:r.at] + "«" + text[r.at:r.end] + " → " + r.to + "»" + text[r.end:])
}

// replacements returns all changes to one of DynamoDB's expressions, and nothing for any other text.
func replacements(expression string) (all []replacement) {
	var rules []rule
	switch {
	case updatePattern.MatchString(expression):
		rules = updateRules
	case conditionPattern.MatchString(expression):
		rules = conditionRules
		for _, match := range and.FindAllStringIndex(expression, -1) {
			if expression[match[0]] == ' ' {
				all = append(all, replacement{match[0], match[1], " OR "})
			}
		}
	}
	for _, r := range rules {
		for _, match := range r.pattern.FindAllStringSubmatchIndex(expression, -1) {
			for _, to := range r.to {
				all = append(all, replacement{match[0], match[1], string(r.pattern.ExpandString(nil, to, expression, match))})
			}
		}
	}
	return all
}

// mutants returns every change to one of the target's files.
func (t target) mutants(root, name string) (all []mutant, err error) {
	path := filepath.Join(root, t.folder, name)
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	source, files := string(bytes), token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range parsed.Decls {
		place := strings.TrimSpace(t.folder + "/" + name + " " + functionName(decl))
		add := func(line string, r replacement) {
			all = append(all, mutant{place: place, line: line, path: path, text: r.apply(source)})
		}
		operator := func(pos token.Pos, old token.Token) {
			at := files.Position(pos).Offset
			start := strings.LastIndex(source[:at], "\n") + 1
			line, _, _ := strings.Cut(source[start:], "\n")
			for _, to := range operators[old] {
				r := replacement{at, at + len(old.String()), to.String()}
				add(replacement{r.at - start, r.end - start, r.to}.mark(line), r)
			}
		}
		ast.Inspect(decl, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.AssignStmt:
				operator(n.TokPos, n.Tok)
			case *ast.BranchStmt:
				operator(n.TokPos, n.Tok)
			case *ast.IncDecStmt:
				operator(n.TokPos, n.Tok)
			case *ast.BinaryExpr:
				operator(n.OpPos, n.Op)
			case *ast.UnaryExpr:
				operator(n.OpPos, n.Op)
			case *ast.BasicLit:
				text, _ := strconv.Unquote(n.Value) // an error leaves the empty text of a number
				for _, r := range replacements(text) {
					add(r.mark(text), replacement{files.Position(n.Pos()).Offset, files.Position(n.End()).Offset,
						strconv.Quote(r.apply(text))})
				}
			}
			return true
		})
	}
	return all, nil
}

// functionName returns the name of a function, Type.Name for a method, and "" for another declaration.
func functionName(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver, _, _ := strings.Cut(types.ExprString(f.Recv.List[0].Type), "[") // without parameters
	return strings.TrimPrefix(receiver, "*") + "." + f.Name.Name
}
