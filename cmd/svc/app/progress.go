package app

import (
	"fmt"
	"strings"
	"time"
)

// progressEvery is the shortest time between two drawings of a progress bar.
const progressEvery = 100 * time.Millisecond

// Progress draws a bar on standard error where the input is a terminal. The caller calls step for each step; a total of
// 0 means that the number of steps is not known.
func (a *App) Progress(what string, total int) (step func()) {
	const width = 30
	done, drawn := 0, time.Now()
	return func() {
		done++
		last := done == total
		if a.Hidden == nil || !last && time.Since(drawn) < progressEvery {
			return
		}
		drawn = time.Now()
		if total == 0 {
			fmt.Fprintf(a.Errs, "\r%s %d", what, done)
			return
		}
		full := width * done / total
		fmt.Fprintf(a.Errs, "\r%s [%s%s] %d/%d", what, strings.Repeat("#", full), strings.Repeat(" ", width-full), done, total)
		if last {
			fmt.Fprintln(a.Errs)
		}
	}
}
