// Package insights runs a query of CloudWatch Logs Insights over log lines, with the commands and functions that this
// project's queries use. The package refuses everything else (CloudWatch Logs user guide, "CloudWatch Logs Insights
// language query syntax").
package insights

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Row is a log line, or a row of a result: values by the names of fields. A field of a nested object is OUTER.INNER.
type Row map[string]any

var (
	list      = regexp.MustCompile(`^[@\w.]+(, [@\w.]+)*$`)
	order     = regexp.MustCompile(`^([@\w.]+) (asc|desc)$`)
	present   = regexp.MustCompile(`^ispresent\(([@\w.]+)\)$`)
	condition = regexp.MustCompile(`^([@\w.]+) (=|!=|like|in) ("[^"]*"|'[^']*'|/[^/]+/|\["[^]]*"\])$`)
	by        = regexp.MustCompile(`^(.+) by ([@\w.]+(?:, [@\w.]+)*)$`)
	aggregate = regexp.MustCompile(`^(count\(\*?\)|sum\((\w+)\)|pct\((\w+), (\d+)\))(?: as (\w+))?(?:, |$)`)
)

// Run returns the result of a query over log lines. The query names no log groups.
func Run(query string, lines []string) (rows []Row, err error) {
	for _, line := range lines {
		row, object := Row{"@message": line, "@timestamp": ""}, map[string]any{}
		if json.Unmarshal([]byte(line), &object) == nil {
			row.add("", object)
		}
		rows = append(rows, row)
	}
	for command := range strings.SplitSeq(query, " | ") {
		name, rest, _ := strings.Cut(command, " ")
		sorted, grouped := order.FindStringSubmatch(rest), by.FindStringSubmatch(rest)
		limit, limitErr := strconv.ParseUint(rest, 10, 31)
		switch {
		case name == "filter":
			rows = slices.DeleteFunc(rows, func(row Row) bool { return !row.any(rest, &err) })
		case name == "fields" && list.MatchString(rest): // the rows keep their other fields
		case name == "stats" && grouped != nil:
			groups := group(rows, strings.Split(grouped[2], ", "))
			for left := grouped[1]; left != ""; {
				a := aggregate.FindStringSubmatch(left)
				if a == nil {
					return nil, fmt.Errorf("%q is no known aggregation", left)
				}
				left = left[len(a[0]):]
				for _, g := range groups {
					g.row[cmp.Or(a[5], a[1])] = value(g.rows, a)
				}
			}
			rows = nil
			for _, g := range groups {
				rows = append(rows, g.row)
			}
		case name == "sort" && sorted != nil:
			slices.SortStableFunc(rows, func(a, b Row) int {
				x, _ := a[sorted[1]].(float64)
				y, _ := b[sorted[1]].(float64)
				return cmp.Compare(x, y) * map[string]int{"asc": 1, "desc": -1}[sorted[2]]
			})
		case name == "limit" && limitErr == nil:
			rows = rows[:min(int(limit), len(rows))]
		default:
			err = cmp.Or(err, fmt.Errorf("%q is no known command", command))
		}
	}
	return rows, err
}

func (r Row) add(prefix string, object map[string]any) {
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok {
			r.add(prefix+name+".", inner)
		} else {
			r[prefix+name] = value
		}
	}
}

// any reports whether a line meets the conditions of a filter. A field that the line lacks equals nothing; whether it
// differs from a text is documented nowhere.
func (r Row) any(conditions string, err *error) bool {
	return slices.ContainsFunc(strings.Split(conditions, " or "), func(all string) bool {
		for one := range strings.SplitSeq(all, " and ") {
			c := condition.FindStringSubmatch(one)
			if p := present.FindStringSubmatch(one); p != nil {
				c = []string{one, p[1], "like", "//"}
			} else if c == nil || c[2] == "like" != (c[3][0] == '/') || c[2] == "in" != (c[3][0] == '[') {
				*err = fmt.Errorf("%q is no known condition", one)
				return false
			}
			value, text, operand := r[c[1]], fmt.Sprint(r[c[1]]), c[3][1:len(c[3])-1]
			if value == nil && c[2] == "!=" {
				*err = fmt.Errorf("%s: a line without the field needs ispresent(%s)", one, c[1])
			}
			if value == nil || !map[string]bool{
				"=": text == operand, "!=": text != operand, "in": slices.Contains(strings.Split(operand, ", "), `"`+text+`"`),
				"like": regexp.MustCompile(operand).MatchString(text),
			}[c[2]] {
				return false
			}
		}
		return true
	})
}

// members are the rows of one combination of the fields after "by", and the row of the result.
type members struct {
	row  Row
	rows []Row
}

func group(rows []Row, fields []string) (groups []members) {
	for _, row := range rows {
		i := slices.IndexFunc(groups, func(g members) bool {
			return !slices.ContainsFunc(fields, func(f string) bool { return g.row[f] != row[f] })
		})
		if i < 0 {
			i, groups = len(groups), append(groups, members{row: maps.Clone(row)})
		}
		groups[i].rows = append(groups[i].rows, row)
	}
	return groups
}

// value returns the value of an aggregation, as aggregate matches it.
func value(rows []Row, a []string) (sum float64) {
	var values []float64
	for _, row := range rows {
		if number, ok := row[a[2]+a[3]].(float64); ok {
			values, sum = append(values, number), sum+number
		}
	}
	switch {
	case a[2] != "":
		return sum
	case a[3] != "" && len(values) > 0:
		rank, _ := strconv.Atoi(a[4]) // digits
		return slices.Sorted(slices.Values(values))[max(0, (rank*len(values)+99)/100-1)]
	case a[3] != "":
		return 0
	}
	return float64(len(rows))
}

var written = regexp.MustCompile("`\n?((?:fields|filter|stats) [^`]+?)\n?`" +
	`|"query": "(?:SOURCE '[^']+' \| )+([^"]+)"`)

// Queries returns the queries of a page, and those of a dashboard's widgets without their log groups.
func Queries(text string) (queries []string) {
	for _, match := range written.FindAllStringSubmatch(text, -1) {
		queries = append(queries, strings.Join(strings.Fields(match[1]+match[2]), " "))
	}
	return queries
}
