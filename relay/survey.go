package relay

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
)

//go:embed sql/survey_*.sql
var surveySQL embed.FS

// SurveyLimit is how far a survey counts: as many means "at least".
const SurveyLimit = 10_000

// A Survey is what was last found in the outbox's tables. Every relay finds the same.
type Survey struct {
	// Events that are not published yet, by their state, and dead ones.
	Ready, Retrying, Parked, Waiting, Dead SurveyCount
	// MaxAttempts is how many of the dead events have had all their attempts.
	MaxAttempts int64
	// BlockedAggregates is how many aggregates have later events wait behind a dead one.
	BlockedAggregates int64
	// UnheldLanes is how many lanes nobody holds, Relays how many relays are alive.
	UnheldLanes, Relays int64
	// Pauses are those of operators that stand, by what they are about.
	Pauses    SurveyPauses
	Retention []SurveyRetention
	// Parts are the statements of a survey, by name, and how each went. What a part found stays until
	// it is answered again. Those that this role may not ask are left out.
	Parts map[string]SurveyPart
}

// SurveyCount counts events, up to [SurveyLimit]; dead ones up to that with and without others that wait behind them.
type SurveyCount struct {
	Events int64
	Oldest time.Duration // the age of the oldest of those, by created_at and the database's clock
}

// SurveyPauses counts pauses.
type SurveyPauses struct{ All, Topics, Types int64 }

// SurveyRetention is how the retention of one kind of row stands.
type SurveyRetention struct {
	Kind    string // published, dead or dedupe
	Deleted int64  // since the beginning, by all
	Ran     bool
	Age     time.Duration // since the last run that was not refused
	Refused bool          // the last run deleted nothing, because it would have been too much
}

// SurveyPart is how one statement of the survey went.
type SurveyPart struct {
	At       time.Time     // when it was last asked and had an answer; before that, when the relay was made
	Took     time.Duration // how long the answer took
	Failures int64         // so far
}

// The bounds of a survey that are not settings.
const (
	surveyTimeout = 2 * time.Second
	// surveyPatience is the longest wait after failures: a database that has no time for a survey is left alone.
	surveyPatience = 5 * time.Minute
)

// Survey returns what was last found. It may be called at any time; see [Config.SurveyEvery].
func (r *Relay) Survey() Survey {
	r.survey.mutex.Lock()
	defer r.survey.mutex.Unlock()
	found := r.survey.found
	found.Parts = map[string]SurveyPart{}
	for _, part := range r.survey.parts {
		if !part.refused {
			found.Parts[part.name] = part.SurveyPart
		}
	}
	return found
}

// surveyor asks the tables now and then, one small statement after the other.
type surveyor struct {
	relay *Relay
	parts []*surveyPart

	mutex sync.Mutex
	found Survey
}

// surveyPart is one statement. scan takes in its answer.
type surveyPart struct {
	SurveyPart
	name    string
	args    []any
	scan    func(rows pgx.Rows, found *Survey) error
	failing int // in a row
	dueAt   time.Time
	refused bool // this role may not ask
}

func newSurveyor(r *Relay) *surveyor {
	s := &surveyor{relay: r}
	if r.config.SurveyEvery <= 0 {
		return s
	}
	var types []string
	var attempts []int32
	for _, eventType := range r.config.Registry.Types() {
		if contract, _ := r.config.Registry.Contract(eventType); contract.MaxAttempts > 0 {
			types, attempts = append(types, eventType), append(attempts, int32(contract.MaxAttempts))
		}
	}
	s.parts = []*surveyPart{
		{name: "ready", args: []any{SurveyLimit}, scan: func(rows pgx.Rows, found *Survey) error {
			return one(rows, &found.Ready.Events, age{&found.Ready.Oldest, nil})
		}},
		{name: "held", args: []any{SurveyLimit}, scan: func(rows pgx.Rows, found *Survey) error {
			return one(rows, &found.Retrying.Events, age{&found.Retrying.Oldest, nil}, &found.Parked.Events, age{&found.Parked.Oldest, nil},
				&found.Waiting.Events, age{&found.Waiting.Oldest, nil})
		}},
		{name: "dead", args: []any{SurveyLimit, types, attempts, r.config.MaxAttempts}, scan: func(rows pgx.Rows, found *Survey) error {
			return one(rows, &found.Dead.Events, age{&found.Dead.Oldest, nil}, &found.MaxAttempts, &found.BlockedAggregates)
		}},
		{name: "fleet", scan: func(rows pgx.Rows, found *Survey) error {
			return one(rows, &found.UnheldLanes, &found.Relays, &found.Pauses.All, &found.Pauses.Topics, &found.Pauses.Types)
		}},
		{name: "retention", scan: func(rows pgx.Rows, found *Survey) error {
			found.Retention = nil
			var kind SurveyRetention
			_, err := pgx.ForEachRow(rows, []any{&kind.Kind, &kind.Deleted, age{&kind.Age, &kind.Ran}, &kind.Refused}, func() error {
				found.Retention = append(found.Retention, kind)
				return nil
			})
			return err //nolint:wrapcheck // it is logged
		}},
	}
	for _, part := range s.parts {
		part.At = time.Now()
	}
	return s
}

// one scans an answer of one row.
func one(rows pgx.Rows, into ...any) error {
	_, err := pgx.ForEachRow(rows, into, func() error { return nil })
	return err //nolint:wrapcheck // it is logged
}

// age scans seconds. Null is none; what was made in the future has no age yet.
type age struct {
	into  *time.Duration
	known *bool
}

// ScanFloat64 is what pgx asks for.
func (a age) ScanFloat64(seconds pgtype.Float8) error {
	*a.into = time.Duration(min(max(seconds.Float64, 0), longestTime.Seconds()*100) * float64(time.Second))
	if a.known != nil {
		*a.known = seconds.Valid
	}
	return nil
}

// run asks until ctx ends. The relay does not wait for it and does not depend on it.
func (s *surveyor) run(ctx context.Context, pool *pgxpool.Pool) {
	for ctx.Err() == nil {
		for _, part := range s.parts {
			if !time.Now().Before(part.dueAt) {
				s.ask(ctx, pool, part)
			}
		}
		every := s.relay.config.SurveyEvery
		timer := time.NewTimer(every - every/20 + rand.N(every/10+1)) // or a whole fleet asks at once
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// ask runs one statement and takes in what it found.
func (s *surveyor) ask(ctx context.Context, pool *pgxpool.Pool, part *surveyPart) {
	began := time.Now()
	s.mutex.Lock()
	found := s.found
	s.mutex.Unlock()
	err := s.query(ctx, pool, part, &found)
	if ctx.Err() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err == nil {
		s.found = found
		// An answer is as old as its question: it may have been on its way for long.
		part.At, part.Took, part.failing, part.refused = began, time.Since(began), 0, false
		return
	}
	part.Failures++
	part.failing++
	wait := min(s.relay.config.SurveyEvery<<min(part.failing, 10), surveyPatience)
	part.dueAt = time.Now().Add(wait)
	part.refused = refused(err)
	if part.failing == 1 {
		s.relay.config.Logger.WarnContext(ctx, "the survey failed: these numbers grow old; it is tried again",
			slog.String("part", part.name), slog.Duration("in", wait), slog.String("error", clean.Error(err)))
	}
}

// query runs it in a transaction of its own that cannot last.
func (s *surveyor) query(ctx context.Context, pool *pgxpool.Pool, part *surveyPart, found *Survey) error {
	ctx, cancel := context.WithTimeout(ctx, 2*surveyTimeout)
	defer cancel()
	text, _ := surveySQL.ReadFile("sql/survey_" + part.name + ".sql") // embedded
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('statement_timeout', $1::text, true), pg_catalog.set_config('jit', 'off', true),
		    pg_catalog.set_config('max_parallel_workers_per_gather', '0', true)`, fmt.Sprint(surveyTimeout.Milliseconds()))
		if err != nil {
			return fmt.Errorf("bound the transaction: %w", err)
		}
		rows, err := tx.Query(ctx, inSchema(string(text), s.relay.config.Schema), part.args...)
		if err != nil {
			return err //nolint:wrapcheck // it is logged
		}
		return part.scan(rows, found)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err //nolint:wrapcheck // it is logged
}
