package torture

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// The audit that users have is run over what a run left: the broker's side is what the stream holds. The checker knows
// better what must be found, since it has what everybody recorded: the two must agree.

// audited is what came of the audit.
type audited struct {
	report  audit.Report
	numbers audit.Numbers
	// twice is how many events the broker has more than once, as the collector counted them.
	twice int64
	// first is what was found first of what must not be.
	first string
}

// audit compares the stream and the table.
func (r *run) audit(ctx context.Context, deliveries []check.Delivery) (found audited, err error) {
	stage, is := r.env.stage.(*natsStage)
	if !is {
		return found, fmt.Errorf("torture: the audit reads streams of NATS, and %T is none", r.env.stage)
	}
	config := audit.Config{
		Schema: r.env.Run, Topics: []string{r.env.Run}, AllTypes: true, Since: time.Since(r.began) + time.Hour,
		InMemory: auditInMemory,
		Found: func(f audit.Finding) error {
			if found.first == "" && (f.Kind == audit.Missing || f.Kind == audit.Unknown) {
				found.first = fmt.Sprintf("%s %v, number %d; %s", f.Kind, f.Event, f.Seq, f.Why)
			}
			return nil
		},
	}
	if found.report, err = audit.Run(ctx, r.env.Pool, &natsHeld{stage: stage}, config); err != nil {
		return found, fmt.Errorf("torture: %w", err)
	}
	if found.numbers, err = audit.Sequence(ctx, r.env.Pool, config); err != nil {
		return found, fmt.Errorf("torture: %w", err)
	}
	times := map[outbox.ID]int{}
	for _, d := range deliveries {
		if d.Request != 0 {
			continue
		}
		if times[d.ID]++; times[d.ID] == 2 {
			found.twice++
		}
	}
	return found, nil
}

// auditInMemory is so few that a run has more: then files are part of what is proved.
const auditInMemory = 1_000

// problems are what must not be.
func (a audited) problems() (problems []string) {
	if !a.report.Clean() {
		problems = append(problems, fmt.Sprintf("the audit has %d missing and %d unknown; the first is %s", a.report.Missing,
			a.report.Unknown, a.first))
	}
	if a.report.Twice != a.twice {
		problems = append(problems, fmt.Sprintf("the audit has %d events twice, and the stream %d", a.report.Twice, a.twice))
	}
	if a.numbers.Open != 0 || a.numbers.Pruned != 0 || a.numbers.Within != 0 {
		problems = append(problems, fmt.Sprintf("the audit of the sequence: nothing was pruned and all has ended, and it "+
			"has %+v", a.numbers))
	}
	return problems
}

// count adds the figures.
func (a audited) count(r *Report) {
	r.add("audit_matched", int(a.report.Matched))
	r.add("audit_twice", int(a.report.Twice))
	r.add("audit_rolled_back", int(a.numbers.Unused))
	r.add("audit_missing", int(a.report.Missing))
	r.add("audit_unknown", int(a.report.Unknown))
}

// natsHeld is what the stream of a run holds.
type natsHeld struct {
	stage  *natsStage
	reader *natsjetstream.Reader
}

func (h *natsHeld) Open(ctx context.Context, from time.Time) (extent audit.Extent, err error) {
	h.reader, err = natsjetstream.NewReader(ctx, h.stage.conn, natsjetstream.ReadConfig{Stream: h.stage.run, From: from})
	if err != nil {
		return extent, err
	}
	return audit.Extent{Messages: int64(h.reader.Messages())}, nil
}

func (h *natsHeld) Read(ctx context.Context, mark func(context.Context) error,
	each func(audit.Message) error,
) (map[string]time.Time, error) {
	if err := mark(ctx); err != nil {
		return nil, err
	}
	err := h.reader.Each(ctx, func(stored natsjetstream.Stored) error {
		message := audit.Message{
			At: stored.At, Topic: stored.Subject, Type: stored.Attributes["event_type"],
			Copy: stored.Attributes["redelivered"] != "",
		}
		message.ID, _ = outbox.ParseID(stored.Attributes["event_id"])              // zero: it has none
		message.Seq, _ = strconv.ParseInt(stored.Attributes["outbox_seq"], 10, 64) // zero: it has none
		return each(message)
	})
	return map[string]time.Time{h.stage.run: h.reader.Since()}, err
}
