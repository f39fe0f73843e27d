package pubsub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// fewestEvents is how many events a run sends at least, however slow the machine is.
const fewestEvents = 100

// Report is what the proof has counted.
type Report struct {
	// Of the suite of all publishers.
	SuitePassed, SuiteFailed, SuiteSkipped int
	// Of the events of one aggregate, one of which fails twice, and of poison.
	Consumed, ConsumeMissing, ConsumeOrder, Redelivered, DeadLetters int
	// Of the minutes in which connections break. Lost are events that were not handled, Unobserved those that a consumer
	// without faults has not seen.
	Events, Lost, Unobserved, Order, Copies, Cuts, Outages, Silences int
	// Left is what could not be deleted.
	Left int
}

// Prove runs the proof and removes what it has created, also when it is interrupted.
func Prove(ctx context.Context, plan Plan) (_ *Report, err error) {
	if plan.Project == "" || plan.Endpoint == "" {
		return nil, errors.New("no project or endpoint: the proof creates topics and subscriptions, and does so only where " +
			"it is told to")
	}
	s, err := newSite(ctx, plan)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
		defer cancel()
		s.wire.heal()
		report.Left = s.remove(cleaning)
		err = errors.Join(err, s.admin.Close())
	}()
	s.sayf("in the project %s at %s, names begin with %s and relaytest-", plan.Project, plan.Endpoint, s.prefix)
	if err := s.consume(ctx, report); err != nil {
		return report, fmt.Errorf("consume: %w", err)
	}
	s.sayf("%d events are handled; now the suite of all publishers", report.Consumed)
	s.suite(ctx, report)
	s.sayf("%d cases passed; now connections break for %s", report.SuitePassed, plan.Chaos)
	if err := s.chaos(ctx, report); err != nil {
		return report, fmt.Errorf("chaos: %w", err)
	}
	return report, nil
}

// OK tells whether all is well and enough was tried.
func (r *Report) OK() bool {
	well := r.SuiteFailed == 0 && r.ConsumeMissing == 0 && r.ConsumeOrder == 0 && r.Lost == 0 && r.Unobserved == 0 &&
		r.Order == 0 && r.Left == 0
	enough := r.SuitePassed >= 10 && r.DeadLetters > 0 && r.Events >= fewestEvents &&
		r.Cuts > 0 && r.Outages > 0 && r.Silences > 0
	return well && enough
}

// Print writes the line of figures.
func (r *Report) Print(to io.Writer) {
	fmt.Fprint(to, "proof-pubsub")
	for _, figure := range []struct {
		name  string
		value int
	}{
		{"suite_passed", r.SuitePassed},
		{"suite_failed", r.SuiteFailed},
		{"suite_skipped", r.SuiteSkipped},
		{"consumed", r.Consumed},
		{"consume_missing", r.ConsumeMissing},
		{"consume_order", r.ConsumeOrder},
		{"redelivered", r.Redelivered},
		{"dead_letters", r.DeadLetters},
		{"events", r.Events},
		{"lost", r.Lost},
		{"unobserved", r.Unobserved},
		{"order", r.Order},
		{"copies", r.Copies},
		{"cuts", r.Cuts},
		{"outages", r.Outages},
		{"silences", r.Silences},
		{"left", r.Left},
	} {
		fmt.Fprintf(to, " %s=%d", figure.name, figure.value)
	}
	fmt.Fprintf(to, " ok=%t\n", r.OK())
}
