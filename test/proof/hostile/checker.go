package hostile

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

//go:embed sql/outcomes.sql
var outcomesSQL string

// outcome is what the tables say of an event.
type outcome struct {
	id, lastError, createdAt, reason, detail string
	seq                                      int64
	state                                    int16
	attempts                                 int32
	letters                                  int
	waits, same                              bool
}

// check says what became of every input of an outlet, and of all the words that its relay left behind.
func (r *run) check(ctx context.Context, o *outlet, trials []*trial) error {
	o.halt()
	outcomes, err := o.outcomes(ctx)
	if err != nil {
		return err
	}
	r.readOn(ctx, o, outcomes)
	accounted := 1 // the first event of all, for which nobody waits
	planned := map[string]bool{}
	for _, t := range trials {
		for _, e := range t.written {
			planned[e.id.String()] = t.in.panics
		}
		accounted += len(t.written) + len(t.good)
		r.report.add(t, o.ending(t, outcomes))
		for _, g := range t.good {
			r.report.addGood(t.in.name, o, g, o.intact(g.event, outcomes[g.id]))
		}
	}
	if accounted != len(outcomes) {
		r.report.failf("%s: the table has %d events, %d were written", o.topic, len(outcomes), accounted)
	}
	for _, found := range outcomes {
		r.report.addWords(o, found)
	}
	r.report.addLog(o, planned)
	r.report.restarts += int(o.restarts.Load())
	copies, strange := o.arrivals.duplicates()
	r.report.duplicates += copies
	if strange > 0 {
		r.report.failf("%s: %d messages are of no event", o.topic, strange)
	}
	return r.checkStatus(ctx, o)
}

// readOn waits until whoever reads the topic has come to the end of what was published.
func (r *run) readOn(ctx context.Context, o *outlet, outcomes map[outbox.ID]outcome) {
	ctx, enough := context.WithTimeout(ctx, r.plan.Reading)
	defer enough()
	for id, found := range outcomes {
		if found.state == published {
			o.arrivals.await(ctx, id)
		}
	}
}

func (o *outlet) outcomes(ctx context.Context) (map[outbox.ID]outcome, error) {
	rows, err := o.pool.Query(ctx, strings.ReplaceAll(outcomesSQL, "{schema}", `"`+o.schema+`"`))
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f outcome, err error) {
		return f, row.Scan(&f.id, &f.seq, &f.state, &f.attempts, &f.lastError, &f.createdAt, &f.waits, &f.letters, &f.reason,
			&f.detail, &f.same)
	})
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	outcomes := make(map[outbox.ID]outcome, len(all))
	for _, each := range all {
		id, err := outbox.ParseID(each.id)
		if err != nil {
			return nil, fmt.Errorf("hostile: %w", err)
		}
		outcomes[id] = each
	}
	return outcomes, nil
}

// verdict is the fate of an input, or what is wrong with it.
type verdict struct {
	ending    Ending
	reason    string
	stuck     bool
	corrupted bool
	problem   string
}

// fate says what became of an input: that of its first event which was not delivered.
func (o *outlet) ending(t *trial, outcomes map[outbox.ID]outcome) verdict {
	if t.isRejected {
		return verdict{ending: Rejected, problem: t.problem}
	}
	for _, e := range t.written {
		if v := o.endingOf(e, outcomes[e.id]); v.ending != Delivered {
			return v
		}
	}
	return verdict{ending: Delivered}
}

func (o *outlet) endingOf(e event, found outcome) verdict {
	_, arrived := o.arrivals.of(e.id)
	switch {
	case found.id == "":
		return verdict{problem: "the table does not have it"}
	case found.state == published:
		if problem := o.intact(e, found); problem != "" {
			return verdict{corrupted: true, problem: problem}
		}
		return verdict{ending: Delivered}
	case arrived:
		return verdict{problem: fmt.Sprintf("the broker has it, and its state is %d", found.state)}
	case found.state == dead || found.state == deadBlocking:
		switch {
		case found.letters != 1 || found.reason == "":
			return verdict{problem: fmt.Sprintf("dead with %d letters", found.letters)}
		case !found.same:
			return verdict{corrupted: true, problem: "its dead letter does not hold what it held"}
		case found.lastError == "" || unsent(e, found) && found.attempts != e.attempts ||
			!unsent(e, found) && found.attempts < 1:
			return verdict{problem: fmt.Sprintf("dead after %d attempts of %q", found.attempts, found.lastError)}
		}
		return verdict{ending: Dead, reason: found.reason}
	case found.state == parkedState || found.waits:
		return verdict{ending: Parked}
	default:
		return verdict{
			stuck:   true,
			problem: fmt.Sprintf("stuck in state %d after %d attempts: %s", found.state, found.attempts, found.lastError),
		}
	}
}

// unsent tells of a death that the contract decided: nothing was sent, so nothing was counted.
func unsent(e event, found outcome) bool {
	switch found.reason {
	case string(outbox.InvalidPayload), string(outbox.AggregateMismatch):
		return true
	case publish.ReasonTooLarge:
		return e.size > outbox.MaxContractBytes
	default:
		return false
	}
}

// The states of a row.
const (
	parkedState  = 2
	deadBlocking = 4
	dead         = 5
	published    = 6
)

// intact compares what the broker has with what was written.
func (o *outlet) intact(e event, found outcome) string {
	got, arrived := o.arrivals.of(e.id)
	if !arrived {
		return "published, and the broker does not have it"
	}
	if got.body != e.body {
		return "the body was changed"
	}
	wanted := maps.Clone(e.attributes)
	wanted["created_at"], wanted["outbox_seq"] = found.createdAt, strconv.FormatInt(found.seq, 10)
	for name, value := range wanted {
		if has, there := got.attributes[name]; !there || has != value {
			return fmt.Sprintf("the attribute %.40q was %.80q and is %.80q (there: %t)", name, value, has, there)
		}
	}
	if len(got.attributes) != len(wanted) {
		return fmt.Sprintf("%d attributes became %d", len(wanted), len(got.attributes))
	}
	return ""
}

// checkStatus looks at what the relay tells about routes and about itself.
func (r *run) checkStatus(ctx context.Context, o *outlet) error {
	for _, table := range []string{
		"outbox_topics", "outbox_relays", "outbox_beats", "outbox_known", "outbox_lanes", "outbox_markers",
	} {
		rows, err := o.pool.Query(ctx, `SELECT t::text FROM "`+o.schema+`".`+table+" t")
		if err != nil {
			return fmt.Errorf("hostile: %w", err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("hostile: %w", err)
		}
		for _, text := range texts {
			r.report.canaries += strings.Count(text, secret)                       // the corpus has canaries in names as well
			if problem := unfit(text); problem != "" && table == "outbox_topics" { // the others list names
				r.report.failf("%s: %s: %s", o.topic, table, problem)
			}
		}
	}
	return nil
}
