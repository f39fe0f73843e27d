package hostile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// Ending is what became of an input.
type Ending string

// The fates. Everything else is a problem.
const (
	Rejected  Ending = "refused"   // at the emit, and the transaction went on
	Delivered Ending = "delivered" // the broker has it, byte for byte
	Dead      Ending = "dead"      // with a reason and a dead letter
	Parked    Ending = "parked"    // set aside, where people see it
)

// want is the fate that an input must have; reason is that of its dead letter.
type want struct {
	ending Ending
	reason string
}

var (
	delivered  = want{ending: Delivered}
	isRejected = want{ending: Rejected}
	parked     = want{ending: Parked}
	invalid    = want{Dead, string(outbox.InvalidPayload)}
	mismatched = want{Dead, string(outbox.AggregateMismatch)}
	tooLarge   = want{Dead, "too_large"}
	rejected   = want{Dead, "rejected"}
	exhausted  = want{Dead, "max_attempts"}
)

// An input is one hostile thing, tried on every broker.
type input struct {
	name  string
	group string
	// write writes it. An error is a refusal.
	write func(ctx context.Context, tx pgx.Tx, at *outlet) ([]event, error)
	// want is the fate that it must have on a broker.
	want func(on Broker, written []event) want
	// trouble is what the publisher does with it, instead of publishing.
	trouble func(message []byte, try int) error
	// panics: the trouble is a panic.
	panics bool
}

// An event is one that an input wrote, as it must arrive.
type event struct {
	id         outbox.ID
	namespace  string
	kind       string
	aggregate  string
	key        string // the aggregate's id
	size       int    // of the body
	attempts   int32  // that were counted against it before
	body       [sha256.Size]byte
	attributes map[string]string // without created_at and outbox_seq, which the database knows
}

func newEvent(id outbox.ID, namespace, kind, aggregate, key, tenant, dedupe, body string,
	headers map[string]string,
) event {
	e := event{
		id: id, namespace: namespace, kind: kind, aggregate: aggregate, key: key,
		size: len(body), body: sha256.Sum256([]byte(body)), attributes: maps.Clone(headers),
	}
	if e.attributes == nil {
		e.attributes = map[string]string{}
	}
	// What the row says stands above what headers say.
	maps.Copy(e.attributes, map[string]string{
		"event_id": id.String(), "event_type": kind, "aggregate_type": aggregate, "aggregate_id": key,
	})
	if namespace == outbox.DefaultNamespace {
		namespace = "" // it does not travel
	}
	for name, value := range map[string]string{"namespace": namespace, "tenant_id": tenant, "dedupe_key": dedupe} {
		if delete(e.attributes, name); value != "" {
			e.attributes[name] = value
		}
	}
	return e
}

// all lists everything that is tried.
func all() (plain, troubled []input, leftOut []string) {
	for _, in := range corpus.All() {
		if in.Rejected == "" && len(in.Events()) > 1000 {
			leftOut = append(leftOut, in.Name+": it is about throughput, which bench-drain measures")
			continue
		}
		plain = append(plain, fromCorpus(in))
	}
	return slices.Concat(plain, envelopeRows(), headerRows(), aroundRows(), timeRows()), errorInputs(), leftOut
}

// fromCorpus sends an input of the corpus through Emit on the way to NATS and through outbox_emit on the way to
// Pub/Sub: both store the same, which proof-emit shows.
func fromCorpus(in corpus.Input) input {
	return input{
		name: in.Name, group: in.Group,
		write: func(ctx context.Context, tx pgx.Tx, at *outlet) ([]event, error) {
			given := in.Events()
			for i := range given {
				fill(&given[i], fmt.Sprintf("%s-%d-%d", in.Group, at.number(), i))
			}
			emit := corpus.Emit
			if at.broker == PubSub && in.OnlyGo == "" && in.SQLDiffers == "" {
				emit = corpus.EmitSQL
			}
			receipts, err := emit(ctx, tx, at.schema, given)
			if err != nil {
				return nil, err
			}
			written := make([]event, len(given))
			for i, g := range given {
				id := receipts[i].ID
				written[i] = newEvent(id, corpus.Or(g.Contract.Namespace, outbox.DefaultNamespace), g.Contract.Type,
					g.Contract.Aggregate,
					g.AggregateID, g.Tenant, g.Key, g.Envelope(id.String()), g.Headers)
			}
			return written, nil
		},
		want: func(on Broker, written []event) want {
			if in.Rejected != "" {
				return isRejected
			}
			return foreseen(on, written)
		},
	}
}

// fill uses what an input leaves free: each gets an aggregate of its own, and something to keep secret.
func fill(g *corpus.Given, name string) {
	if g.AggregateID == "order-1" {
		g.AggregateID = name
	}
	if data, ok := g.Payload.(json.RawMessage); ok && string(data) == "{}" {
		g.Payload = json.RawMessage(`{"note":"` + secret + `"}`)
	}
	if g.Headers == nil {
		g.Headers = map[string]string{"note": secret}
	}
}

// foreseen is the fate of events that the outbox took.
func foreseen(on Broker, written []event) want {
	for _, e := range written {
		switch {
		case !isKnown(e.kind):
			return parked
		case e.aggregate != aggregateType:
			return mismatched
		case on == NATS && !natsTakes(e):
			return tooLarge
		}
	}
	return delivered
}

// clearlyRejected tells a refusal from an accident: the library's own, data that PostgreSQL cannot take (class
// 22), a constraint (23), or a document too deep for the server's stack or a value too large for its indexes (54).
func clearlyRejected(err error) bool {
	if errors.Is(err, outbox.ErrRefused) {
		return true
	}
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	return slices.Contains([]string{"22", "23", "54"}, state.SQLState()[:2])
}
