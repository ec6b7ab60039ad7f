package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// script returns the commands of a page's blocks in their order: those below a heading, or of the page for an empty
// heading. A block that begins with "```sh not run: REASON" becomes a comment.
func script(page, heading string) (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	in, below, prefix, indent := false, heading == "", "", ""
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		title := strings.TrimLeft(trimmed, "#")
		reason, skipped := strings.CutPrefix(trimmed, "```sh not run: ")
		switch {
		case in && trimmed == "```":
			in = false
		case in && below:
			out.WriteString(prefix + strings.TrimPrefix(line, indent))
		case in:
		case heading != "" && title != trimmed:
			below = strings.TrimSpace(title) == heading
		case trimmed == "```sh" || skipped:
			in, prefix = true, ""
			indent, _, _ = strings.Cut(line, "`")
			if skipped {
				prefix = "# not run, " + reason + ": "
			}
		}
	}
	if in || out.Len() == 0 {
		return "", fmt.Errorf("%s has no blocks of commands, or one without an end, below %q", page, heading)
	}
	return out.String(), nil
}

// follow runs a page's commands, with other names, as an operator does: in one shell. Each name must occur in the page.
func (r *rehearsal) follow(ctx context.Context, page, heading string, names ...string) {
	text, err := script(page, heading)
	for i := 0; err == nil && i < len(names); i += 2 {
		if !strings.Contains(text, names[i]) {
			err = fmt.Errorf("%s below %q: no %q", page, heading, names[i])
		}
	}
	if r.fail(err); r.err != nil {
		return
	}
	text = strings.NewReplacer(append(names, "svc-prod", smokeStack, "svc/prod/", "svc/"+smokeStage+"/",
		"--stage prod", "--stage "+smokeStage,
		"Value=prod", "Value="+smokeStage)...).Replace(text)
	// The AWS CLI 1 reads another variable than the SDKs.
	env := []string{"AWS_REGION=" + r.region, "AWS_DEFAULT_REGION=" + r.region}
	_, r.err = r.do(ctx, command{"bash",
		[]string{"-euo", "pipefail", "-c", "svc() { " + r.svc + " \"$@\"; }\n" + text}, env})
}
