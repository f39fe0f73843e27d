package console

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// picked is a verb for dead letters that are picked, with what the database has of each afterwards.
var picked = []struct {
	verb, label string
	events      int    // how many of those that are left; 0: all of them
	query       string // what they are afterwards
}{
	// Those that others may pass stay dead: they are the first again.
	{"skip", "Let others pass", 2, `e.state = 5`},
	{"discard", "Discard", 2, `e.state = 7`},
	{"reissue", "Reissue", 2, `e.state = 7`},
	{"redrive", "Redrive", 0, `e.state <> 7`},
}

// verbs uses every button that changes something, and asks the database for what came of it.
func (r *run) verbs(ctx context.Context) error {
	t, err := r.tab(ctx, browser.Light)
	if err != nil {
		return err
	}
	r.report.Verbs = map[string]string{}
	for _, one := range picked {
		// What comes again is taken.
		r.shop.broker.couponsWork.Store(one.verb != "skip" && one.verb != "discard")
		if err := r.pick(ctx, t, one.verb, one.label, one.events, one.query); err != nil {
			return fmt.Errorf("%s: %w%s", one.verb, err, t.said(ctx))
		}
	}
	for verb, use := range map[string]func(context.Context, *tab) error{
		"release": r.release, "redeliver": r.redeliver, "steer": r.steer, "export": r.export, "order": r.order,
		"large": r.large, "erase": r.erase,
	} {
		if err := use(ctx, t); err != nil {
			return fmt.Errorf("%s: %w%s", verb, err, t.said(ctx))
		}
	}
	v, err := t.see(ctx, "after every verb", 200, wish{})
	if err != nil {
		return err
	}
	r.add(&r.report.Others, v)
	return t.Close(ctx)
}

// came notes what came of a verb.
func (r *run) came(verb string, want, got int64) {
	r.report.Verbs[verb] = ""
	if got != want {
		r.report.Verbs[verb] = fmt.Sprintf("of %d events %d are as they should be", want, got)
	}
}

// pick picks the first dead coupons of the page, or all, and uses a verb.
func (r *run) pick(ctx context.Context, t *tab, verb, label string, events int, so string) error {
	if _, err := t.Open(ctx, t.address+inShop("dead", "q", "type:coupon_redeemed")); err != nil {
		return err
	}
	for n := range events {
		if err := t.Click(ctx, fmt.Sprintf("tbody tr:nth-child(%d) input[name=id]", n+1), ""); err != nil {
			return err
		}
	}
	if events == 0 {
		if err := t.Click(ctx, "#all", ""); err != nil {
			return err
		}
		if err := t.Eval(ctx, `return document.querySelectorAll('input[name=id]:checked').length`, nil, &events); err != nil {
			return err
		}
	}
	if err := t.Click(ctx, "button", label); err != nil {
		return err
	}
	if err := r.confirm(ctx, t, events); err != nil {
		return err
	}
	n, err := r.db.number(ctx, `SELECT count(*) FROM shop.outbox_actions a JOIN shop.outbox_events e ON e.id = a.event_id
		WHERE a.verb = $1 AND a.actor = 'ada' AND a.reason = 'by hand' AND e.event_type = 'coupon_redeemed' AND `+so, verb)
	r.came(verb, int64(events), n)
	return err
}

// confirm says why, on the page that asks for it, and reads how many were changed.
func (r *run) confirm(ctx context.Context, t *tab, events int) error {
	if err := t.Fill(ctx, "#reason", "by hand"); err != nil {
		return err
	}
	if err := t.Click(ctx, "main form[method=post] button", ""); err != nil {
		return err
	}
	return t.Until(ctx, `return document.body.innerText.includes(argument)`, fmt.Sprintf("%d done", events))
}

// event is the id of the first event for which it is so.
func (r *run) event(ctx context.Context, so string) (id string, err error) {
	query := `SELECT e.id::text FROM shop.outbox_events e LEFT JOIN shop.outbox_held h USING (lane, seq) WHERE ` + so +
		` ORDER BY e.seq LIMIT 1`
	if err := r.db.pool.QueryRow(ctx, query).Scan(&id); err != nil {
		return "", fmt.Errorf("console: an event with %s: %w", so, err)
	}
	return id, nil
}

// one uses a verb on the page of one event.
func (r *run) one(ctx context.Context, t *tab, id, label string) error {
	if _, err := t.Open(ctx, t.address+inShop("events/"+id)); err != nil {
		return err
	}
	if err := t.Click(ctx, "main a.button", label); err != nil {
		return err
	}
	return r.confirm(ctx, t, 1)
}

func (r *run) release(ctx context.Context, t *tab) error {
	id, err := r.event(ctx, "h.kind = 2")
	if err != nil {
		return err
	}
	if err := r.one(ctx, t, id, "Release"); err != nil {
		return err
	}
	n, err := r.db.number(ctx, `SELECT count(*) FROM shop.outbox_actions WHERE verb = 'release' AND event_id = $1`, id)
	r.came("release", 1, n)
	return err
}

func (r *run) redeliver(ctx context.Context, t *tab) error {
	id, err := r.event(ctx, "e.event_type = 'order_created' AND e.state = 6")
	if err != nil {
		return err
	}
	if err := r.one(ctx, t, id, "Redeliver"); err != nil {
		return err
	}
	copies := 0
	// The shop's own job sends it to another topic, sooner or later.
	own := func(a arrival) bool { return a.copyOf && a.topic == ordersTopic && a.id.String() == id }
	err = eventually.Within(ctx, r.plan.Patience, "the copy comes", func() (bool, error) {
		copies = r.shop.broker.count(own)
		return copies > 0, nil
	})
	r.came("redeliver", 1, int64(copies))
	return err
}

// erase erases one event that was published.
func (r *run) erase(ctx context.Context, t *tab) error {
	id, err := r.event(ctx, "e.event_type = 'order_paid' AND e.state = 6")
	if err != nil {
		return err
	}
	if _, err := t.Open(ctx, t.address+inShop("events", "q", "id:"+id)); err != nil {
		return err
	}
	if err := t.Click(ctx, "a.button", "Erase"); err != nil {
		return err
	}
	for field, value := range map[string]string{"#typed": "1", "#reason": "by hand"} {
		if err := t.Fill(ctx, field, value); err != nil {
			return err
		}
	}
	if err := t.Click(ctx, "button", "Erase 1 event"); err != nil {
		return err
	}
	if err := t.Until(ctx, `return document.body.innerText.includes(argument)`, "1 event is erased"); err != nil {
		return err
	}
	n, err := r.db.number(ctx, `SELECT count(*) FROM shop.outbox_actions WHERE verb = 'erase' AND event_id = $1`, id)
	r.came("erase", 1, n)
	return err
}

// steer plans a replay, starts it slowly, and pauses, resumes and cancels it.
func (r *run) steer(ctx context.Context, t *tab) error {
	if _, err := t.Open(ctx, t.address+inShop("replay")); err != nil {
		return err
	}
	if err := t.Choose(ctx, "#verb", "redeliver"); err != nil {
		return err
	}
	for field, value := range map[string]string{"#q": "type:order_created", "#topic": "orders-again", "#rate": "1"} {
		if err := t.Fill(ctx, field, value); err != nil {
			return err
		}
	}
	if err := t.Click(ctx, "button", "Count them"); err != nil {
		return err
	}
	if err := t.Fill(ctx, "#reason", "a new consumer"); err != nil {
		return err
	}
	if err := t.Click(ctx, "button", "Start the job"); err != nil {
		return err
	}
	for _, control := range []struct{ verb, state string }{
		{"pause", "paused"}, {"resume", "running"}, {"cancel", "canceled"},
	} {
		if err := t.Fill(ctx, "#reason", "by hand"); err != nil {
			return err
		}
		if err := t.Click(ctx, "main form[method=post] button", control.verb); err != nil {
			return err
		}
		const state = `return document.querySelector('#live .tag')?.textContent === argument`
		if err := t.Until(ctx, state, control.state); err != nil {
			return err
		}
		n, err := r.db.number(ctx, `SELECT count(*) FROM shop.outbox_jobs WHERE topic = 'orders-again' AND state = $1`,
			control.state)
		if err != nil {
			return err
		}
		r.came(control.verb, 1, n)
	}
	return nil
}

// export reads the file that a page offers.
func (r *run) export(ctx context.Context, t *tab) error {
	if _, err := t.Open(ctx, t.address+inShop("events", "q", "type:coupon_redeemed")); err != nil {
		return err
	}
	lines := int64(0)
	if err := t.Eval(ctx, `
		const link = [...document.querySelectorAll('a.button')].find(a => a.textContent === 'NDJSON')
		return fetch(link.href).then(r => r.text()).then(text => text.trim().split('\n').length)`, nil, &lines); err != nil {
		return err
	}
	n, err := r.db.number(ctx, `SELECT count(*) FROM shop.outbox_events WHERE event_type = 'coupon_redeemed'`)
	r.came("export", n, lines)
	return err
}
