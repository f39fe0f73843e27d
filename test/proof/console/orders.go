package console

import (
	"context"
	"fmt"
)

// orders are what an operator tells the relays by the page of a topic, or of all of them.
var orders = []struct {
	name, page, button string
	rate               string
	query              string // counts what stands afterwards
	want               int64
}{
	{"pause a topic", "topics?topic=" + couponsTopic, "Pause", "", pausesOf + `'topic' AND name = 'coupons'`, 1},
	{"resume a topic", "topics?topic=" + couponsTopic, "Resume", "", pausesOf + `'topic' AND name = 'coupons'`, 0},
	{"limit a topic", "topics?topic=" + couponsTopic, "Limit", "50", limitsOf + `'coupons' AND rate = 50`, 1},
	{"lift a limit", "topics?topic=" + couponsTopic, "Lift limit", "", limitsOf + `'coupons'`, 0},
	{"pause everything", "topics", "Pause everything", "", pausesOf + `'all'`, 1},
	{"resume everything", "topics", "Resume everything", "", pausesOf + `'all'`, 0},
}

const (
	pausesOf = `SELECT count(*) FROM shop.outbox_pauses WHERE scope = `
	limitsOf = `SELECT count(*) FROM shop.outbox_limits WHERE topic = `
)

// order gives all of them, one after the other, and what an admin says of a restored database.
func (r *run) order(ctx context.Context, t *tab) error {
	for _, one := range orders {
		if _, err := t.Open(ctx, t.address+inShop(one.page)); err != nil {
			return err
		}
		if err := t.Click(ctx, "main p.actions a.button:text-is("+fmt.Sprintf("%q", one.button)+")", ""); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		if one.rate != "" {
			if err := t.Fill(ctx, "#rate", one.rate); err != nil {
				return err
			}
		}
		if err := t.say(ctx); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		n, err := r.db.number(ctx, one.query)
		if err != nil {
			return err
		}
		r.report.Verbs[one.name] = ""
		if n != one.want {
			r.report.Verbs[one.name] = fmt.Sprintf("%d stand, and there should be %d", n, one.want)
		}
	}
	if _, err := t.Open(ctx, t.address+inShop("restored")); err != nil {
		return err
	}
	if err := t.say(ctx); err != nil {
		return err
	}
	r.report.Verbs["trust a restored database"] = ""
	return nil
}

// say says why, and sends the form. The page that follows is no form.
func (t *tab) say(ctx context.Context) error {
	if err := t.Fill(ctx, "#reason", "by hand"); err != nil {
		return err
	}
	if err := t.Click(ctx, "main form[method=post] button", ""); err != nil {
		return err
	}
	return t.Until(ctx, `return document.readyState === 'complete' && !document.getElementById('reason')`, nil)
}
