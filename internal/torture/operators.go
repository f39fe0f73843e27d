package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// operators look after dead letters while the run goes on.
type operators struct {
	env *Env
	// unsteady lets rounds fail because the database is away.
	unsteady bool
	operator *operator.Operator
	folder   string
	random   *rand.Rand
	// patience is how long a dead letter lies first.
	patience time.Duration
	// decisions are by the number of the dead letter; next is what arrived first after a skip or a discard.
	decisions map[int64]*decision
	next      map[outbox.ID]uint64
	mu        sync.Mutex // for did and met
	did       map[check.Verb]int
	met       map[bool]int // dead letters of events that block, and of those that do not
	// unexpected are actions that found their event in another state than its dead letter says.
	unexpected []string

	// redelivers tells that published events are asked for again, and redelivery is the one that is under way. canceled
	// has, by action, what arrived first after its requests were canceled.
	redelivers bool
	// draining tells that no redelivery begins any more, asking that one begins, and relays may not have seen it yet.
	draining, asking atomic.Bool

	redelivery *redelivery
	canceled   map[outbox.ID]uint64
}

// letter is a dead letter that waits for a decision.
type letter struct {
	Number   int64
	Event    outbox.ID
	Blocking bool
}

// actor is who the log of actions names.
const actor = "torture"

// verbsAtLeast is how often each verb must be used in a thorough run.
var verbsAtLeast = map[check.Verb]int{check.Redrive: 5, check.Skip: 1, check.Discard: 1, check.Redeliver: 20}

// idle tells whether one of them was used too little so far, or met only one kind of dead letters.
func (o *operators) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for verb, least := range verbsAtLeast {
		if o.did[verb] < least {
			return true
		}
	}
	return o.met[true] == 0 || o.met[false] == 0
}

func newOperators(env *Env, plan Plan) *operators {
	return &operators{
		env: env, unsteady: plan.Unsteady, operator: operator.New(env.Pool, env.Run), folder: plan.Folder,
		random:   rand.New(rand.NewPCG(plan.Seed, 1<<32)),
		patience: plan.Patience, decisions: map[int64]*decision{}, next: map[outbox.ID]uint64{}, did: map[check.Verb]int{},
		met: map[bool]int{}, redelivers: !plan.Forgetful && !plan.WithoutCopies, canceled: map[outbox.ID]uint64{},
	}
}

// run decides about every dead letter, until the context ends.
func (o *operators) run(ctx context.Context) error {
	for wait.For(ctx, 300*time.Millisecond) == nil {
		if err := o.round(ctx); err != nil && ctx.Err() == nil && !(o.unsteady && interrupted(err)) && !tooSlow(err) {
			return fmt.Errorf("torture: an operator: %w", err)
		}
	}
	return nil
}

func (o *operators) round(ctx context.Context) error {
	rows, err := o.env.Pool.Query(ctx, o.env.SQL(`SELECT d.id, d.event_id, d.blocking FROM {schema}.outbox_dlq d
		WHERE failed_at <= clock_timestamp() - $1::interval AND NOT EXISTS (SELECT FROM {schema}.outbox_actions a 
		WHERE a.dlq_id = d.id) ORDER BY d.id`), o.patience)
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	letters, err := pgx.CollectRows(rows, pgx.RowToStructByPos[letter])
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	for _, l := range letters {
		d, decided := o.decisions[l.Number]
		if !decided {
			d = o.decide(l)
			o.decisions[l.Number] = d
		}
		if err := o.carryOut(ctx, d, l); err != nil {
			return err
		}
	}
	return o.redeliver(ctx)
}

// decision is what shall become of a dead letter.
type decision struct {
	verb   check.Verb // empty: it stays dead
	action outbox.ID
	over   bool
}

// decide redrives most of what blocks and skips or discards the rest. Of what does not block, some stays
// dead.
func (o *operators) decide(l letter) *decision {
	verb := check.Redrive
	switch n := o.random.IntN(10); {
	case l.Blocking && n < 3:
		verb = check.Skip
	case n < 4:
		verb = check.Discard
	case !l.Blocking && n < 7:
		verb = ""
	}
	return &decision{verb: verb, action: outbox.NewID(), over: verb == ""}
}

// carryOut has the relay's operator do it. After an answer that got lost it is called again.
func (o *operators) carryOut(ctx context.Context, d *decision, l letter) error {
	if d.over {
		return nil
	}
	if d.verb == check.Redrive {
		// Cured first, or it would die again at once.
		if err := os.WriteFile(filepath.Join(o.folder, curedFolder, l.Event.String()), nil, 0o600); err != nil {
			return fmt.Errorf("torture: %w", err)
		}
	}
	if _, begun := o.next[l.Event]; !begun {
		arrived, err := o.env.stage.arrivals(ctx)
		if err != nil {
			return err
		}
		o.next[l.Event] = arrived + 1
		o.mu.Lock()
		o.did[d.verb]++
		o.met[l.Blocking]++
		o.mu.Unlock()
	}
	do := map[check.Verb]func(context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error){
		check.Redrive: o.operator.Redrive, check.Skip: o.operator.Skip, check.Discard: o.operator.Discard,
	}[d.verb]
	results, err := do(ctx, operator.Action{ID: d.action, Actor: actor, Reason: "a proof"}, l.Event)
	if err != nil {
		return err
	}
	d.over = true
	for _, result := range results {
		if result.Outcome != operator.Done {
			o.unexpected = append(o.unexpected,
				fmt.Sprintf("%s of event %s, which has an open dead letter: %s, it was %s", d.verb,
					l.Event, result.Outcome, result.Was))
		}
	}
	return nil
}
