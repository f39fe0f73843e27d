package console_test

import (
	"context"
	"strings"
	"testing"
)

// TestPathScreen draws what is in a real database.
func TestPathScreen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		relay := e.joins("relay-a", "1 hour", 1, 63)
		e.knows(relay, "order_created", "orders")
		e.knows(relay, "mail", "mails")
		e.fails(relay, "orders", "it is gone")
		e.writesDown("mails", 600, 300)
		e.dead(event{aggregate: "4/7 <b>"})
		e.emit(event{aggregate: "5"})
		tx, err := e.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := tx.Exec(t.Context(), e.sql(`SELECT nextval('{schema}.outbox_events_seq_seq')`)); err != nil {
			t.Fatal(err)
		}
		page := e.shows(viewer, "path", "10/s", "5.0/s", "mails", "64 lanes", "1 relay<", "<dt>ready</dt><dd>1,")
		for _, red := range []string{"aggregate:order/4/7 &lt;b&gt;", "dead", "lane:64", "topic:orders"} {
			if strings.Count(page, `data-fault="`+red+`"`) != 1 {
				t.Errorf("%s is not red", red)
			}
		}
		if red := strings.Count(page, "data-fault="); red != 4 {
			t.Errorf("%d things are red", red)
		}
		if !strings.Contains(page, "<dt>open writers</dt><dd>1</dd>") {
			t.Error("the open writer is not counted")
		}
		e.isForbidden("path", tenants)
	})
}
