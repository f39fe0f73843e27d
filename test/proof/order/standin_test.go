package order_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// standIn is a slow and simple relay: whoever finds lanes free takes them, reads all that is open from the
// beginning, publishes, settles. It stands for relays with bugs that ours must not have.
type standIn struct {
	config relay.Config
	bug    string
	conn   *pgx.Conn

	id      outbox.ID // zero: it has to start
	beaten  int64
	lanes   []int16
	token   outbox.ID // of the relay, and of its lanes
	renewed time.Time
	cursor  int64
	steps   sync.Mutex
}

// The bugs of a stand-in.
const (
	noBug         = ""
	bugCursor     = "cursor"    // reads only above what it has seen: a lower number that appears later is lost
	bugUnfenced   = "unfenced"  // settles though it was ended, and publishes after its lease
	bugImpatient  = "impatient" // ends others before their lease has
	bugChargesAll = "charges"   // counts failures of the route as attempts
	bugNoBlock    = "no-block"  // lets later events pass a dead head that blocks
	bugUnsettled  = "unsettled" // forgets to settle one publish in a hundred
	bugKeepsHeld  = "keeps"     // leaves what it has published in outbox_held
	bugLosesHeld  = "loses"     // says that an event is held, and not how
	bugFollowers  = "followers" // sends later events of the aggregate before a retry
)

func newStandIn(bug string) func(relay.Config) (torture.Runner, error) {
	return func(config relay.Config) (torture.Runner, error) {
		return &standIn{config: config, bug: bug}, nil
	}
}

func (s *standIn) Run(ctx context.Context) error {
	config, err := pgx.ParseConfig(s.config.Database)
	if err != nil {
		return err
	}
	config.RuntimeParams["search_path"] = s.config.Schema
	if s.conn, err = pgx.ConnectConfig(context.Background(), config); err != nil {
		return err
	}
	defer s.conn.Close(context.Background())
	for ctx.Err() == nil {
		if err := s.hold(context.Background()); err != nil {
			return err
		}
		moved, err := s.batch(context.Background())
		if err != nil {
			return err
		}
		if !moved {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return s.leave(context.Background())
}

// hold says that the relay is alive, ends those that are not, and takes all that is free if it has nothing.
func (s *standIn) hold(ctx context.Context) error {
	sent := time.Now()
	alive, err := s.beat(ctx)
	switch {
	case err != nil:
		return err
	case alive:
		s.renewed = sent
	case s.bug == bugUnfenced && len(s.lanes) > 0:
		return nil // what of it
	default:
		for _, lane := range s.lanes {
			s.step(relay.Step{Kind: relay.StepLose, Lane: lane, Token: s.token})
		}
		s.id, s.lanes = outbox.ID{}, nil
		return nil
	}
	if err := s.endOthers(ctx); err != nil || len(s.lanes) > 0 {
		return err
	}
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT FROM outbox_relays WHERE id = $1 FOR NO KEY UPDATE", s.id); err != nil {
			return err
		}
		s.lanes, err = s.list(ctx, `UPDATE outbox_lanes SET owner = $1, token = $2, acquired_at = clock_timestamp()
			WHERE (layout, lane) IN (SELECT layout, lane FROM outbox_lanes WHERE owner IS NULL FOR UPDATE SKIP LOCKED)
			AND EXISTS (SELECT FROM outbox_relays WHERE id = $1 AND ended_at IS NULL) RETURNING lane`, s.id, s.token)
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE outbox_relays SET lanes = $2 WHERE id = $1 AND ended_at IS NULL", s.id, s.lanes)
		}
		return err
	})
}

// beat says that the relay is alive. A new one is there from its first beat on. False: others have ended it.
func (s *standIn) beat(ctx context.Context) (alive bool, err error) {
	err = pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if s.id == (outbox.ID{}) {
			s.id, s.token, s.beaten = outbox.NewID(), outbox.NewID(), 0
			_, err := tx.Exec(ctx, "INSERT INTO outbox_relays (id, token, name) VALUES ($1, $2, $3)", s.id, s.token,
				s.config.Name)
			if err != nil {
				return err
			}
		}
		s.beaten++
		beaten, err := tx.Exec(ctx, `WITH own AS MATERIALIZED (
				SELECT id FROM outbox_relays WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
			) INSERT INTO outbox_beats (relay, number, until) SELECT id, $2, clock_timestamp() + $3 FROM own`, s.id, s.beaten,
			s.config.Lease)
		alive = beaten.RowsAffected() == 1
		return err
	})
	return alive, err
}

// endOthers frees the lanes of relays whose lease has ended.
func (s *standIn) endOthers(ctx context.Context) error {
	if s.bug == bugImpatient && len(s.lanes) == 0 { // whoever has lanes is as good as dead
		_, err := s.conn.Exec(ctx, `UPDATE outbox_beats SET until = clock_timestamp() - interval '1 ms'
			WHERE relay <> $1 AND until > clock_timestamp()`, s.id)
		if err != nil {
			return err
		}
	}
	_, err := s.conn.Exec(ctx, "SELECT outbox_end_expired(NULL, 8, false)")
	return err
}

// leave gives back what the relay has, and ends it.
func (s *standIn) leave(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		for _, statement := range []string{
			"SELECT FROM outbox_relays WHERE id = $1 FOR UPDATE",
			"UPDATE outbox_lanes SET owner = NULL, token = NULL WHERE owner = $1",
			"UPDATE outbox_relays SET lanes = '{}', ended_at = clock_timestamp() WHERE id = $1 AND ended_at IS NULL",
		} {
			if _, err := tx.Exec(ctx, statement, s.id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *standIn) list(ctx context.Context, query string, args ...any) ([]int16, error) {
	rows, err := s.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int16])
}

func (s *standIn) step(step relay.Step) {
	s.steps.Lock()
	defer s.steps.Unlock()
	s.config.Observe(step)
}

// open is an event that may be published now: no earlier one of its aggregate and type is held.
type open struct {
	Lane              int16
	Seq               int64
	ID                outbox.ID
	Type, Kind, Thing string
	Payload           []byte
	Headers           map[string]string
	Attempts          int
	CreatedAt         time.Time

	err  error
	sent bool
}

const openSQL = `SELECT e.lane, e.seq, e.id, e.event_type, e.aggregate_type, e.aggregate_id,
	e.payload_json::text::bytea, coalesce(e.headers::jsonb, '{}'), e.attempt_count, e.created_at
	FROM outbox_events e LEFT JOIN outbox_held o ON o.lane = e.lane AND o.seq = e.seq
	WHERE (e.state = 0 OR e.state = 1 AND (o.kind = 3 OR o.kind = 1 AND o.due <= now()))
	AND e.lane = ANY ($1) AND e.seq > $2
	AND NOT EXISTS (SELECT FROM outbox_held h WHERE (h.kind = 1 AND $3 OR h.kind = 4 AND $4)
		AND h.aggregate_type = e.aggregate_type AND h.aggregate_id = e.aggregate_id AND h.event_type = e.event_type 
		AND h.seq < e.seq
		AND (h.kind = 4 OR h.due > now()))
	ORDER BY e.seq LIMIT 300`

// batch moves what is open. False: nothing was.
func (s *standIn) batch(ctx context.Context) (bool, error) {
	if len(s.lanes) == 0 {
		return false, nil
	}
	rows, err := s.conn.Query(ctx, openSQL, s.lanes, s.cursor, s.bug != bugFollowers, s.bug != bugNoBlock)
	if err != nil {
		return false, err
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*open, error) {
		var e open
		err := row.Scan(&e.Lane, &e.Seq, &e.ID, &e.Type, &e.Kind, &e.Thing, &e.Payload, &e.Headers, &e.Attempts, &e.CreatedAt)
		return &e, err
	})
	if err != nil || len(events) == 0 {
		return false, err
	}
	groups := map[string][]*open{}
	for _, e := range events {
		groups[e.Type+"/"+e.Thing] = append(groups[e.Type+"/"+e.Thing], e)
		if s.bug == bugCursor {
			s.cursor = max(s.cursor, e.Seq)
		}
	}
	var group sync.WaitGroup
	for _, list := range groups {
		group.Go(func() { s.publish(ctx, list) })
	}
	group.Wait()
	return true, s.settle(ctx, events)
}

// publish sends the events of one aggregate and topic in order, up to the first that fails.
func (s *standIn) publish(ctx context.Context, list []*open) {
	for _, e := range list {
		if s.bug != bugUnfenced && time.Since(s.renewed) > s.config.Lease/2 {
			return
		}
		contract, _ := s.config.Registry.Contract(e.Type)
		s.step(relay.Step{Kind: relay.StepPublish, Lane: e.Lane, Token: s.token, Event: e.ID})
		attributes := map[string]string{
			"event_id": e.ID.String(), "event_type": e.Type, "aggregate_type": e.Kind, "aggregate_id": e.Thing,
		}
		maps.Copy(attributes, e.Headers)
		limited, cancel := context.WithTimeout(ctx, s.config.Lease/3)
		e.err = s.config.Publisher.Publish(limited, &publish.Message{
			ID: e.ID, Topic: contract.Topic, Key: e.Kind + "/" + e.Thing, Body: e.Payload, Attributes: attributes, Seq: e.Seq,
		})
		cancel()
		e.sent = true
		if e.err == nil {
			s.step(relay.Step{Kind: relay.StepAck, Lane: e.Lane, Token: s.token, Event: e.ID})
			continue
		}
		failed := relay.Step{Kind: relay.StepPublishFailed, Lane: e.Lane, Token: s.token, Event: e.ID, Class: publish.Unknown}
		var (
			rejected *publish.RejectedError
			terminal *publish.TerminalError
			ofTopic  *publish.TopicError
		)
		switch {
		case errors.As(e.err, &rejected):
			failed.Class = publish.Rejected
		case errors.As(e.err, &terminal):
			failed.Class = publish.Terminal
		case errors.As(e.err, &ofTopic):
			failed.Class = publish.TopicFault
		}
		s.step(failed)
		if failed.Class != publish.TopicFault || s.bug == bugChargesAll {
			failed.Kind = relay.StepCharge
			s.step(failed)
			e.Attempts++
		}
		if s.bug != bugFollowers {
			return
		}
	}
}

// settle writes down what became of the events, if the lanes are still its own.
func (s *standIn) settle(ctx context.Context, events []*open) error {
	stale := false
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		var held int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM outbox_relays
			WHERE id = $1 AND ended_at IS NULL AND lanes @> $2 FOR KEY SHARE) r`, s.id, s.lanes).Scan(&held); err != nil {
			return err
		}
		if stale = held == 0 && s.bug != bugUnfenced; stale {
			return nil
		}
		for _, e := range events {
			if e.sent {
				if err := s.settleOne(ctx, tx, e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	for _, e := range events {
		if !e.sent || s.forgets(e) {
			continue
		}
		done := relay.Step{Kind: relay.StepSettle, Lane: e.Lane, Token: s.token, Event: e.ID, Result: relay.SettleApplied}
		done.State = s.after(e)
		if stale {
			done.Result = relay.SettleStale
		}
		s.step(done)
	}
	return nil
}

func (s *standIn) forgets(e *open) bool {
	return s.bug == bugUnsettled && e.err == nil && e.ID[15] < 3 && e.Attempts == 0
}

// after is the state that the event gets.
func (s *standIn) after(e *open) relay.State {
	contract, _ := s.config.Registry.Contract(e.Type)
	var terminal *publish.TerminalError
	switch {
	case e.err == nil:
		return relay.StatePublished
	case !errors.As(e.err, &terminal) && e.Attempts < contract.MaxAttempts:
		return relay.StateRetrying
	case contract.OnDead == outbox.OnDeadBlock:
		return relay.StateDeadBlocking
	default:
		return relay.StateDead
	}
}

// settleOneSQL changes both tables that say where an event stands. What is parked or blocks is nobody's to settle.
const settleOneSQL = `WITH event AS (
		UPDATE outbox_events e SET state = CASE WHEN $2::smallint < 5 THEN 1 ELSE $2::smallint END, attempt_count = $3,
		       published_at = CASE WHEN $2::smallint = 6 THEN clock_timestamp() END
		 WHERE id = $1 AND state IN (0, 1)
		   AND NOT EXISTS (SELECT FROM outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq AND h.kind IN (2, 4))
		RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id
	), gone AS (
		DELETE FROM outbox_held h USING event e WHERE h.lane = e.lane AND h.seq = e.seq AND $2::smallint >= 5
		   AND $4 <> 'keeps'
	) INSERT INTO outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
	SELECT lane, seq, $2::smallint, CASE WHEN $2::smallint = 1 THEN clock_timestamp() + '100 ms' END, namespace,
	       event_type, aggregate_type, aggregate_id
	  FROM event WHERE $2::smallint < 5 AND $4::text <> 'loses'
	ON CONFLICT (lane, seq) DO UPDATE
	   SET kind = excluded.kind, due = excluded.due, since = clock_timestamp(), version = DEFAULT`

func (s *standIn) settleOne(ctx context.Context, tx pgx.Tx, e *open) error {
	state := s.after(e)
	if s.forgets(e) {
		return nil
	}
	_, err := tx.Exec(ctx, settleOneSQL, e.ID, int16(state), e.Attempts, s.bug)
	if err != nil || state == relay.StateRetrying || state == relay.StatePublished {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, `+
		`event_type, aggregate_type, aggregate_id, error_reason, payload_json, headers)
		SELECT seq, id, created_at, attempt_count, $2, namespace, event_type, aggregate_type, aggregate_id,
			'rejected', payload_json, headers FROM outbox_events WHERE id = $1`, e.ID, state == relay.StateDeadBlocking)
	return err
}
