package event

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"svcapi/shared/pattern"
)

// Range is the pages from First to Last.
type Range struct{ First, Last int }

// rangeForm is a page number, or a range of page numbers, from 1 to 9999.
var rangeForm = pattern.New(`^([1-9][0-9]{0,3})(?:-([1-9][0-9]{0,3}))?$`)

// MaxRanges is the longest text of page ranges in characters.
const MaxRanges = 255

// ParseRanges reads page ranges such as 1-3,5. The list is in ascending order, and each page is in one range. A
// document with the page lastStart has pages in each range of the text. The result is false for a text of another form.
func ParseRanges(text string) (list []Range, lastStart int, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		match := rangeForm().FindStringSubmatch(part)
		if match == nil {
			return nil, 0, false
		}
		first, _ := strconv.Atoi(match[1]) // the form has digits only
		last, _ := strconv.Atoi(cmp.Or(match[2], match[1]))
		if first > last {
			return nil, 0, false
		}
		list = append(list, Range{first, last})
	}
	slices.SortFunc(list, func(a, b Range) int { return a.First - b.First })
	lastStart = list[len(list)-1].First
	merged := list[:1]
	for _, r := range list[1:] {
		if before := &merged[len(merged)-1]; r.First <= before.Last {
			before.Last = max(before.Last, r.Last)
		} else {
			merged = append(merged, r)
		}
	}
	return merged, lastStart, true
}
