package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// operatorTables are the tables of what operators do, with the kinds of movement that each holds
// (docs/decisions/money.md#operator-movements).
var operatorTables = map[string][]string{"Movements": {"grant", "refund", "adjustment"},
	"Resolutions": {"confirmation", "refunding resolution"}}

// movementWrites are the actions that change items. TransactWriteItems needs the action of each of its writes
// ("Actions, resources, and condition keys for Amazon DynamoDB", Service Authorization Reference).
var movementWrites = []string{
	"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete",
	"ImportTable",
	"UpdateTable", "DeleteTable", "RestoreTableFromBackup", "RestoreTableToPointInTime", "PutResourcePolicy",
}

// rightsIn are the types of IAM and DynamoDB whose rights the rules read. Any other type could give a role more.
var rightsIn = []string{"AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::DynamoDB::Table"}

// movements: the role of no function can write a movement of any kind, but the resolver may put resolutions
// (docs/decisions/extensions.md#resolver). The rule is stricter than IAM: a condition counts as
// fulfilled, a denial as none, a reference as any text, NotAction and NotResource as everything.
func movements(s *templateFile) (f findings) {
	for _, r := range s.resources("") {
		if matches("AWS::(IAM|DynamoDB)::.*", r.kind) && !slices.Contains(rightsIn, r.kind) {
			f.add("%s: no rule reads what a resource of the type %s permits", r.id, r.kind)
		}
	}
	for _, function := range s.functions() {
		role := s.resource(function.stem() + "Role")
		statements := role.statements()
		for name := range referred(role.properties["ManagedPolicyArns"]) {
			statements = append(statements, s.resource(name).statements()...)
		}
		if text := show(role.properties["ManagedPolicyArns"]); strings.Contains(text, "arn:") {
			f.add("%s has a policy whose rights are not known here: %s", role.id, text)
		}
		for _, statement := range statements {
			for _, branch := range append(statement.list("Fn::If"), any(statement)) {
				right, _ := branch.(object)
				for _, table := range slices.Sorted(maps.Keys(operatorTables)) {
					if right.text("Effect") != "Allow" || !s.covers(right, "Resource", tableARN(table)) {
						continue
					}
					for _, action := range movementWrites {
						resolves := function.id == resolverID && table == "Resolutions" && action == "PutItem"
						if resolves || !s.covers(right, "Action", "dynamodb:"+action) {
							continue
						}
						for _, kind := range operatorTables[table] {
							f.add("%s may %s: %s", role.id, action, kind)
						}
					}
				}
			}
		}
	}
	return f
}

// resource is the resource of a logical ID.
func (s *templateFile) resource(id string) resource {
	r := s.doc.object("Resources", id)
	return resource{id, r.text("Type"), r, r.object("Properties")}
}

// tableARN is the ARN of the table of a logical ID, in a stage of an account.
func tableARN(id string) string { return "arn:aws:dynamodb:r:1:table/svc-s-" + strings.ToLower(id) }

var arnOf, reference = regexp.MustCompile(`\$\{(\w+)\.Arn\}`), regexp.MustCompile(`\$\{[^}]*\}|@\w+@`)

// covers reports whether a pattern of a statement's actions or resources matches a value.
func (s *templateFile) covers(statement object, key, value string) bool {
	return statement["Not"+key] != nil || slices.ContainsFunc(statement.list(key), func(pattern any) bool {
		text := show(pattern)
		if of := arnOf.FindStringSubmatch(text); of != nil && s.resource(of[1]).kind != "" {
			text = strings.Replace(text, of[0], tableARN(of[1]), 1) // no table has the name of another resource
		}
		text = regexp.QuoteMeta(reference.ReplaceAllString(text, "*"))
		return matches("(?i)"+strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(text), value)
	})
}
