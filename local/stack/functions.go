package stack

import (
	"context"

	"svcapi/local/lambda"
)

// Invoke runs one event through a function, by its logical ID, as a schedule or an operator would.
func (s *Stack) Invoke(ctx context.Context, function string, event []byte) (lambda.Result, error) {
	return s.host.Invoke(ctx, function, event)
}

// Processes are the IDs of a function's processes at this moment, by its logical ID.
func (s *Stack) Processes(function string) []int { return s.host.Processes(function) }

// AwaitIdle waits until a function, by its logical ID, has ended its events and the work after their responses.
func (s *Stack) AwaitIdle(ctx context.Context, function string) error {
	return s.host.AwaitIdle(ctx, function)
}
