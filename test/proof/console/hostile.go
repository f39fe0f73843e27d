package console

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

//go:embed injections.json
var injectionsFile []byte

// injections are texts that want to be run, with %N for the number that they call alert with.
func injections() (list []string, err error) {
	if err := json.Unmarshal(injectionsFile, &list); err != nil {
		return nil, fmt.Errorf("console: injections.json: %w", err)
	}
	return list, nil
}

// fields are what producers, brokers and operators write. The first eleven are an event's.
var fields = []string{
	"event_type", "aggregate_type", "aggregate_id", "tenant_id", "namespace", "dedupe_key", "header_name", "header_value",
	"payload_key", "payload_value", "last_error",
	"topic", "error_detail", "attempt_error",
	"relay_name", "relay_version", "known_type", "known_topic", "topic_error",
	"pause_name", "pause_actor", "pause_reason", "limit_topic", "limit_actor", "limit_reason",
	"job_filter", "job_topic", "job_actor", "job_reason", "job_worker", "job_error",
	"action_actor", "action_reason", "action_target", "request_topic", "request_error", "halt_reason", "application",
	"user", "address",
}

// unseen are fields that no page shows. If one ever does, nothing of them must run.
var unseen = []string{"request_topic"}

// few are fields that are filled in elsewhere, or have no place in the database.
var few = []string{"application", "user", "address"}

// A text is one of the injections in one field. The number that it calls alert with tells it from all others.
type text struct {
	Field  string
	Number int // of the injection
	Text   string
}

// numbers of texts begin here, so that none is a part of another.
const firstNumber = 100_000

func textOf(injections []string, field string, number int) text {
	t := text{Field: field, Number: number}
	t.Text = strings.ReplaceAll(injections[number], "%N", t.call())
	return t
}

// hostile is the outbox with these texts.
type hostile struct {
	db         *database
	texts      []text
	events     []outbox.ID // one for each injection that is dead
	others     []outbox.ID // in other states
	jobs       []outbox.ID
	aggregates []string // of these events, as a query: type=T&id=I
	topics     []string
	writers    []pgx.Tx
	conns      []*pgx.Conn
}

// fill writes all of it.
func (h *hostile) fill(ctx context.Context) error {
	list, err := injections()
	if err != nil {
		return err
	}
	var rows, others []map[string]string
	for number := range list {
		row := map[string]string{}
		for _, field := range fields {
			if slices.Contains(few, field) || field == "halt_reason" && number > 2 {
				continue
			}
			t := textOf(list, field, number)
			row[field] = t.Text
			h.texts = append(h.texts, t)
		}
		h.complete(row, "5", "")
		rows = append(rows, row)
		h.aggregates = append(h.aggregates, url.Values{"type": {row["aggregate_type"]}, "id": {row["aggregate_id"]}}.Encode())
		h.topics = append(h.topics, row["topic"])
		others = append(others, h.other(row, number))
	}
	for _, step := range []struct {
		name string
		rows []map[string]string
	}{
		{"hostile_relays", rows},
		{"hostile_events", rows},
		{"hostile_events", others},
		{"hostile_decisions", rows},
		{"hostile_times", rows},
	} {
		document, err := json.Marshal(step.rows)
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		if err := h.db.run(ctx, hostileName, step.name, string(document)); err != nil {
			return err
		}
	}
	return h.connect(ctx, list)
}

// complete gives a row its ids, its payload and its headers.
func (h *hostile) complete(row map[string]string, state, kind string) {
	id, job := outbox.NewID(), outbox.NewID()
	row["id"], row["job_id"], row["relay_id"] = id.String(), job.String(), outbox.NewID().String()
	row["state"], row["kind"] = state, kind
	row["payload"] = object("version", 1, "eventId", id, "occurredAt", "2026-01-01T00:00:00.000000Z", "data",
		map[string]any{row["payload_key"]: row["payload_value"], "big": json.Number("12345678901234567890.123456789")})
	row["headers"] = object(row["header_name"], row["header_value"])
	if state == "5" {
		h.events, h.jobs = append(h.events, id), append(h.jobs, job)
	} else {
		h.others = append(h.others, id)
	}
}

// other is an event of the same texts in another state.
func (h *hostile) other(row map[string]string, number int) map[string]string {
	same := maps.Clone(row)
	relay := row["relay_id"]
	in := [][2]string{{"0", ""}, {"1", "1"}, {"1", "2"}, {"1", "3"}, {"1", "4"}, {"6", ""}, {"7", ""}}[number%7]
	h.complete(same, in[0], in[1])
	same["relay_id"] = relay
	return same
}

// object is a JSON object, with its keys in this order, and with < as it is.
func object(pairs ...any) string {
	var out strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		out.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		out.WriteString(asJSON(pairs[i]) + ":" + asJSON(pairs[i+1]))
	}
	return out.String() + "}"
}

func asJSON(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // strings and numbers
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// applications is how many programs are connected, with a name of their own and an open transaction that has emitted.
const applications = 4

// connect has programs with names that want to be run hold the oldest transactions.
func (h *hostile) connect(ctx context.Context, list []string) error {
	for number := range list {
		t := textOf(list, "application", number)
		if len(h.writers) == applications {
			return nil
		}
		if len(t.Text) > 63 || strings.ContainsFunc(t.Text, func(r rune) bool { return r > unicode.MaxASCII }) {
			continue // PostgreSQL would make another of it
		}
		config, err := h.db.Config(t.Text)
		if err != nil {
			return err
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		h.conns = append(h.conns, conn)
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		if _, err := tx.Exec(ctx, `SELECT hostile.outbox_emit('opened', 'writer', '1', '{}')`); err != nil {
			return fmt.Errorf("console: %w", err)
		}
		h.writers, h.texts = append(h.writers, tx), append(h.texts, t)
	}
	return nil
}

// Close ends what was left open.
func (h *hostile) Close() {
	for _, conn := range h.conns {
		_ = conn.Close(context.Background()) // with its transaction
	}
}

// call is the part of a text that no other has.
func (t text) call() string {
	return strconv.Itoa(firstNumber + slices.Index(fields, t.Field)*1_000 + t.Number)
}

// found tells whether a page shows a text: as it is, or as JSON writes it. White space and what nobody can see do not
// count: neither the browser's nor the console's lines keep them.
func (t text) found(page string) bool {
	// The number alone is quick to look for, and nearly always the answer.
	if t.Field != "" && !strings.Contains(page, t.call()) {
		return false
	}
	quoted := strings.Trim(asJSON(t.Text), `"`)
	return strings.Contains(page, visible(t.Text)) || strings.Contains(page, visible(quoted))
}

// visible is what there is to see of a text, with one space for all that is white.
func visible(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
