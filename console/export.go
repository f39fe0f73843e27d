package console

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// export sends what a filter finds as a file, without payloads. It is read as a whole first: a file that was cut off
// would look like one that is complete. One that is not says so in its name.
func (q *request) export() error {
	filter, err := q.filter(q.text("q"))
	if err != nil {
		return err
	}
	format := q.text("format")
	var out bytes.Buffer
	write, kind := lines(&out), "application/x-ndjson"
	switch format {
	case "ndjson":
	case "csv":
		write, kind = table(&out), "text/csv; charset=utf-8"
	default:
		return invalid("format must be csv or ndjson.")
	}
	found := 0
	more, err := q.pages(q.Context(), filter, mostExport, func(events []operator.Event) error {
		found += len(events)
		return write(events)
	})
	if err != nil {
		return err
	}
	if more && found == 0 {
		return invalid("Nothing was found in the %s that a file may take, because no index helps. Add created:, an "+
			"aggregate or a type, or use outboxctl events export.", span.Of(longestExport))
	}
	name := "events"
	if more {
		name = "events-not-all"
	}
	h := q.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s.%s"`, q.outbox.Name, name, format))
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	if more {
		h.Set("X-Truncated", strconv.Itoa(found))
	}
	q.w.WriteHeader(http.StatusOK)
	_, err = q.w.Write(out.Bytes())
	return err //nolint:wrapcheck // nobody hears it: the browser has gone
}

func lines(out *bytes.Buffer) func([]operator.Event) error {
	encoder := json.NewEncoder(out)
	return func(events []operator.Event) error {
		for _, e := range events {
			if err := encoder.Encode(e); err != nil {
				return fmt.Errorf("write event %s: %w", e.ID, err)
			}
		}
		return nil
	}
}

// table writes for spreadsheets. A text that one of them would take for a formula gets an apostrophe before it.
func table(out *bytes.Buffer) func([]operator.Event) error {
	w := csv.NewWriter(out)
	head := []string{
		"id", "seq", "state", "type", "aggregate_type", "aggregate_id", "tenant", "namespace", "topic",
		"created_at", "published_at", "attempts", "last_error",
	}
	return func(events []operator.Event) error {
		if head != nil {
			_ = w.Write(head) // Flush says what went wrong
			head = nil
		}
		for _, e := range events {
			row := []string{
				e.ID.String(), fmt.Sprint(e.Seq), e.State, e.Type, e.AggregateType, e.AggregateID, e.Tenant,
				e.Namespace, e.Topic, stamp(e.CreatedAt), stamp(timeOf(e.PublishedAt)), strconv.Itoa(e.Attempts), e.LastError,
			}
			for i, cell := range row {
				if cell != "" && (cell[0] == '=' || cell[0] == '+' || cell[0] == '-' || cell[0] == '@' || cell[0] == '\t') {
					row[i] = "'" + cell
				}
			}
			_ = w.Write(row)
		}
		w.Flush()
		return w.Error()
	}
}
