package main

import (
	"context"
	"errors"
	"log/slog"

	"svcapi/shared/rates/refresh"
	"svcapi/shared/telemetry"
)

// scheduled runs the refresher on a schedule.
type scheduled struct {
	refresher *refresh.Refresher
	bankHours refresh.BankSchedule
	log       *telemetry.Logger
}

// handle runs the refresher once and logs one line. Sources without rates are no error of the function: the rates in
// use stay, an alarm watches their age, and the deployment of an unrelated change goes on.
func (s *scheduled) handle(ctx context.Context) error {
	run, cancel := telemetry.BeforeLogging(ctx)
	defer cancel()
	report, err := s.refresher.Run(run, refresh.Options{Actor: "schedule", Bank: s.bankHours})
	s.record(ctx, report, err)
	if errors.Is(err, refresh.ErrNoRates) {
		return nil
	}
	return err
}

// record logs one line with the metrics that alarms use. RatesAge is the age of the last good fetch, RatesDateAge that
// of the source's own date. BankAge, which no alarm reads and so is no metric, is that of the central bank's oldest
// value. RatesRefused and RatesFailed count sources; a source whose last fetch failed counts until a fetch succeeds.
func (s *scheduled) record(ctx context.Context, report *refresh.Report, err error) {
	refused, failed := report.Count(refresh.Refused), report.Count(refresh.Failed)+report.Count(refresh.Waiting)
	event := telemetry.Event{
		Level: slog.LevelInfo, Message: "rates synced",
		Dimensions: []telemetry.Dimension{{Name: "operation", Value: "ratesync"}},
		Metrics: []telemetry.Metric{
			{Name: "RatesRefused", Unit: telemetry.Count, Value: float64(refused), SkipZero: true},
			{Name: "RatesFailed", Unit: telemetry.Count, Value: float64(failed)},
		},
	}
	if refused+failed > 0 {
		event.Level = slog.LevelWarn
	}
	now := s.refresher.Now()
	if c := report.Current; c != nil {
		event.Metrics = append(event.Metrics,
			telemetry.Metric{Name: "RatesAge", Unit: telemetry.Seconds, Value: now.Sub(c.Fetched).Seconds()},
			telemetry.Metric{Name: "RatesDateAge", Unit: telemetry.Seconds, Value: now.Sub(c.Date).Seconds()})
		event.Attributes = append(event.Attributes, slog.String("source", c.Source), slog.Time("date", c.Date),
			slog.Int("rates", len(c.Rates)))
		if age, ok := c.Bank.Age(now); ok {
			event.Attributes = append(event.Attributes, slog.Float64("BankAge", age.Seconds()))
		}
	}
	for _, o := range report.Results {
		event.Attributes = append(event.Attributes,
			slog.Group(o.Source, slog.String("outcome", string(o.Outcome)), slog.String("detail", o.Detail)))
	}
	if err != nil {
		event.Level, event.Message = slog.LevelError, "rates not synced"
		event.Attributes = append(event.Attributes, slog.String("error", err.Error()))
	}
	s.log.Emit(ctx, event)
}
