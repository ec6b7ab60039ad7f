package ratelimit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"svcapi/shared/project"
)

// TestQuotas checks that the quotas add up to the limit and are above 0, and that the first one never falls where the
// limit is raised: a counter then never exceeds its quota.
func TestQuotas(t *testing.T) {
	l, first := New(nil, ""), 0
	for requests, want := range map[int]int{-1: 0, 0: 0, 1: 1, 1000: 1, 1001: 2, 1007: 8, 1015: 16, 1016: 16,
		16_000: 16, 1_000_003: 16} {
		all := l.quotas(project.RateLimit{Requests: requests})
		sum := 0
		for _, quota := range all {
			sum += quota
		}
		if len(all) != want || sum != max(requests, 0) || want > 0 && slices.Min(all) < 1 {
			t.Errorf("%d requests: %v", requests, all)
		}
	}
	for requests := 1; requests < 20_000; requests += 7 {
		if quota := l.quotas(project.RateLimit{Requests: requests})[0]; quota < first {
			t.Errorf("%d requests: the first quota falls to %d", requests, quota)
		} else {
			first = quota
		}
	}
}

// TestWindow checks that windows follow one another without gap or overlap, from 1970 on. A window of less than a
// second lasts a second.
func TestWindow(t *testing.T) {
	for _, test := range []struct {
		length time.Duration
		at     int64
		start  int64
		end    int64
	}{
		{time.Minute, 120, 120, 180}, {time.Minute, 179, 120, 180}, {time.Minute, 180, 180, 240},
		{time.Second, 7, 7, 8}, {0, 7, 7, 8}, {time.Millisecond, 7, 7, 8}, {7 * time.Second, 20, 14, 21},
	} {
		start, end := window(project.RateLimit{Window: test.length}, time.Unix(test.at, 999))
		if start != test.start || end.Unix() != test.end || end.Nanosecond() != 0 {
			t.Errorf("%s at %d: %d to %s", test.length, test.at, start, fmt.Sprint(end.Unix()))
		}
	}
}
