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
	id     outbox.ID
	bug    string
	conn   *pgx.Conn

	lanes   []int16
	token   outbox.ID
	renewed time.Time
	cursor  int64
	steps   sync.Mutex
}

// The bugs of a stand-in.
const (
	noBug         = ""
	bugCursor     = "cursor"    // reads only above what it has seen: a lower number that appears later is lost
	bugUnfenced   = "unfenced"  // settles whatever the lane's token says, and publishes after its lease
	bugChargesAll = "charges"   // counts failures of the route as attempts
	bugNoBlock    = "no-block"  // lets later events pass a dead head that blocks
	bugUnsettled  = "unsettled" // forgets to settle one publish in a hundred
	bugFollowers  = "followers" // sends later events of the aggregate before a retry
)

func newStandIn(bug string) func(relay.Config) (torture.Runner, error) {
	return func(config relay.Config) (torture.Runner, error) {
		return &standIn{config: config, bug: bug, id: outbox.NewID()}, nil
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
	_, err = s.conn.Exec(context.Background(),
		"UPDATE outbox_lanes SET owner = NULL, token = NULL, lease_until = NULL WHERE token = $1", s.token)
	return err
}

// hold takes what is free, under a new token with all that it has, or prolongs it.
func (s *standIn) hold(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, `INSERT INTO outbox_relays (id, name, alive_until) VALUES ($1, $2, clock_timestamp() + $3)
		ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until`, s.id, s.config.Name, s.config.Lease)
	if err != nil {
		return err
	}
	sent := time.Now()
	if len(s.lanes) > 0 {
		kept, err := s.list(ctx,
			"UPDATE outbox_lanes SET lease_until = clock_timestamp() + $2 WHERE token = $1 RETURNING lane", s.token,
			s.config.Lease)
		if err != nil {
			return err
		}
		if len(kept) == len(s.lanes) {
			s.renewed = sent
			return nil
		}
		if s.bug == bugUnfenced {
			return nil // what of it
		}
		for _, lane := range s.lanes {
			s.step(relay.Step{Kind: relay.StepLose, Lane: lane, Token: s.token})
		}
		_, err = s.conn.Exec(ctx, "UPDATE outbox_lanes SET owner = NULL, token = NULL, lease_until = NULL WHERE token = $1",
			s.token)
		s.lanes = nil
		return err
	}
	s.token = outbox.NewID()
	s.lanes, err = s.list(ctx, `UPDATE outbox_lanes SET owner = $1, token = $2, lease_until = clock_timestamp() + $3, 
		acquired_at = clock_timestamp()
		WHERE (layout, lane) IN (SELECT layout, lane FROM outbox_lanes WHERE owner IS NULL OR lease_until < clock_timestamp() 
		FOR UPDATE SKIP LOCKED)
		RETURNING lane`, s.id, s.token, s.config.Lease)
	s.renewed = sent
	return err
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

const openSQL = `SELECT outbox_lane(namespace, aggregate_type, aggregate_id), seq, id, event_type, aggregate_type, 
	aggregate_id,
	payload_json::text::bytea, coalesce(headers::jsonb, '{}'), attempt_count, created_at
	FROM outbox_events e WHERE state IN (0, 1, 3) AND outbox_lane(namespace, aggregate_type, aggregate_id) = ANY ($1)
	AND (state <> 1 OR next_attempt_at <= now()) AND seq > $2
	AND NOT EXISTS (SELECT FROM outbox_events h WHERE (h.state = 1 AND $3 OR h.state = 4 AND $4)
		AND h.aggregate_type = e.aggregate_type AND h.aggregate_id = e.aggregate_id AND h.event_type = e.event_type 
		AND h.seq < e.seq
		AND (h.state = 4 OR h.next_attempt_at > now()))
	ORDER BY seq LIMIT 300`

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
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM (SELECT FROM outbox_lanes WHERE token = $1 FOR KEY SHARE) l",
			s.token).Scan(&held); err != nil {
			return err
		}
		if stale = held != len(s.lanes) && s.bug != bugUnfenced; stale {
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

func (s *standIn) settleOne(ctx context.Context, tx pgx.Tx, e *open) error {
	state := s.after(e)
	if s.forgets(e) {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE outbox_events SET state = $2::smallint, attempt_count = $3, published_at = 
		CASE WHEN $2::smallint = 6 THEN clock_timestamp() END,
		next_attempt_at = CASE WHEN $2::smallint = 1 THEN clock_timestamp() + '100 ms' END WHERE id = $1 
		AND state IN (0, 1, 3)`, e.ID, int16(state), e.Attempts)
	if err != nil || state == relay.StateRetrying || state == relay.StatePublished {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, `+
		`event_type, aggregate_type, aggregate_id, error_reason, payload_json, headers)
		SELECT seq, id, created_at, attempt_count, state = 4, namespace, event_type, aggregate_type, aggregate_id,
			'rejected', payload_json, headers FROM outbox_events WHERE id = $1`, e.ID)
	return err
}
