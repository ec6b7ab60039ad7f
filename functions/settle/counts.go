package main

import (
	"context"

	"svcapi/shared/telemetry"
)

// counts subtracts what requests counted for messages that did not leave and had no time to subtract
// (docs/decisions.md#recipient-limit).
func (s *Settler) counts(ctx context.Context) ([]telemetry.Metric, error) {
	if s.Limiter == nil {
		return nil, nil
	}
	subtracted, err := s.Limiter.SubtractQueued(ctx)
	if subtracted == 0 {
		return nil, err
	}
	return []telemetry.Metric{{Name: "CountsSubtracted", Unit: telemetry.Count, Value: float64(subtracted)}}, err
}
