package app

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"svcapi/shared/project"
)

// StageLimits returns the deployed stack for AboveStage. The local stack has no limits of a stage.
func (s *Stack) StageLimits(ctx context.Context) (*CloudStack, error) {
	if s.Local {
		return &CloudStack{}, nil
	}
	return s.DeployedStack(ctx)
}

// AboveStage returns which limit of the stage ends requests before a project's own limit does, and "" for none. The web
// ACL counts an address over five minutes, and the throttle counts all projects on one route.
func (c *CloudStack) AboveStage(limit project.RateLimit) string {
	if limit.Window < time.Second {
		return ""
	}
	own := float64(limit.Requests) / limit.Window.Seconds()
	for _, l := range []struct {
		parameter, what string
		seconds         float64
	}{
		{"ApiRequestsPerSecond", "all projects on one route", 1},
		{"AddressRequestsPer5Minutes", "one address", 300},
	} {
		stage, err := strconv.ParseFloat(c.Parameters[l.parameter], 64)
		if err == nil && stage > 0 && own > stage/l.seconds {
			return fmt.Sprintf("%.4g requests a second are above %s=%.0f, which is %.4g a second for %s", own, l.parameter,
				stage, stage/l.seconds, l.what)
		}
	}
	return ""
}
