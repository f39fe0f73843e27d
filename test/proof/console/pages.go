package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// page is one that a tab opens, with a name for pictures.
type page struct{ name, path string }

func inShop(path string, pairs ...string) string { return in(shopName, path, pairs...) }

// in is the path of a page of an outbox.
func in(name, path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	at := "/o/" + name + "/" + path
	if len(values) > 0 {
		at += "?" + values.Encode()
	}
	return at
}

// shopPages are all pages of the shop: those that somebody finds in the menu, and those behind them.
func (r *run) shopPages(ctx context.Context) ([]page, error) {
	menu, err := r.menu(ctx, shopName)
	if err != nil {
		return nil, err
	}
	pages := append([]page{{"outboxes", "/"}}, menu...)
	var id [6]outbox.ID
	for i, query := range []string{
		`SELECT event_id FROM shop.outbox_dlq WHERE event_type = 'invoice_issued' ORDER BY id DESC LIMIT 1`,
		`SELECT e.id FROM shop.outbox_events e JOIN shop.outbox_held h USING (lane, seq) WHERE h.kind = 3 LIMIT 1`,
		`SELECT e.id FROM shop.outbox_events e JOIN shop.outbox_held h USING (lane, seq) WHERE h.kind = 1 LIMIT 1`,
		`SELECT e.id FROM shop.outbox_events e WHERE e.event_type = 'order_paid' AND e.state = 6 LIMIT 1`,
		`SELECT e.id FROM shop.outbox_events e JOIN shop.outbox_held h USING (lane, seq) WHERE h.kind = 2 LIMIT 1`,
		`SELECT event_id FROM shop.outbox_dlq WHERE event_type = 'email_requested' LIMIT 1`,
	} {
		if err := r.db.pool.QueryRow(ctx, query).Scan((*[16]byte)(&id[i])); err != nil {
			return nil, fmt.Errorf("console: an event of the shop: %w", err)
		}
	}
	for i, name := range []string{
		"event-dead", "event-waiting", "event-retrying", "event", "event-parked", "event-deleted",
	} {
		pages = append(pages, page{name, inShop("events/" + id[i].String())})
	}
	dead := id[0].String()
	return append(pages,
		page{"events-dead", inShop("events", "q", "state:dead")},
		page{"events-none", inShop("events", "q", "type:nothing_of_the_kind")},
		page{"aggregate", inShop("aggregate", "type", "product", "id", blockedProduct)},
		page{"dead-filter", inShop("dead", "q", "type:invoice_issued")},
		page{"confirm", inShop("act/discard", "id", dead)},
		page{"replay", inShop("replay")},
		page{"plan", inShop("replay", "verb", "redrive", "q", "type:invoice_issued")},
		page{"job", inShop("jobs/" + r.shop.job.String())},
		page{"topic", inShop("topics", "topic", invoicesTopic)},
		page{"pause", inShop("order/pause", "scope", "topic", "name", ordersTopic)},
		page{"limit", inShop("order/limit", "scope", "topic", "name", ordersTopic)},
		page{"restored", inShop("restored")},
		page{"erase", inShop("erase", "q", "aggregate:customer/c-002")},
		page{"erase-nothing", inShop("erase", "q", "aggregate:customer/nobody state:dead")},
		page{"relays-ended", inShop("relays", "ended", "1")},
		page{"overview-day", inShop("", "minutes", "1440")},
		page{"not-found", inShop("events/" + outbox.NewID().String())},
		page{"not-understood", inShop("events", "q", "colour:red")},
	), nil
}

// menu are the screens that an outbox has in its menu.
func (r *run) menu(ctx context.Context, name string) (pages []page, err error) {
	t, err := r.tab(ctx, browser.Light)
	if err != nil {
		return nil, err
	}
	if _, err := t.Open(ctx, t.address+in(name, "")); err != nil {
		return nil, err
	}
	var links []string
	const script = `return [...document.querySelectorAll('nav.menu a')].map(a => a.getAttribute('href'))`
	if err := t.Eval(ctx, script, nil, &links); err != nil {
		return nil, err
	}
	for _, link := range links {
		screen := strings.Trim(strings.TrimPrefix(link, in(name, "")), "/")
		if screen == "" {
			screen = "overview"
		}
		pages = append(pages, page{screen, link})
	}
	return pages, t.Close(ctx)
}

// hostilePages are those of the hostile outbox, on which every text is found somewhere.
func (r *run) hostilePages(ctx context.Context) (paths []string, err error) {
	menu, err := r.menu(ctx, hostileName)
	if err != nil {
		return nil, err
	}
	for _, p := range menu {
		paths = append(paths, p.path)
		if strings.HasSuffix(p.path, "/") {
			continue
		}
		paths = append(paths, marked(p.path, "limit", "200"))
	}
	h := r.hostile
	paths = append(paths, in(hostileName, "jobs", "all", "1"), in(hostileName, "dead", "all", "1", "limit", "200"),
		in(hostileName, "audit", "limit", "1000"), in(hostileName, "relays", "ended", "1"),
		in(hostileName, "restored"), in(hostileName, "erase", "q", "state:dead"),
		in(hostileName, "act/skip", "id", h.others[4].String()),
		in(hostileName, "replay", "verb", "redrive", "q", "state:dead"))
	for i := range h.events {
		if i%4 == 0 || r.plan.TimesDecide {
			paths = append(paths, in(hostileName, "jobs/"+h.jobs[i].String()))
		}
		if i < 7 || r.plan.TimesDecide {
			paths = append(paths, in(hostileName, "topics", "topic", h.topics[i]),
				in(hostileName, "order/resume", "scope", "topic", "name", h.topics[i]),
				in(hostileName, "events/"+h.others[i].String()), in(hostileName, "aggregate?"+h.aggregates[i]))
		}
	}
	return paths, nil
}

// reflected are pages to which a text comes in the address: somebody was sent a link.
func (r *run) reflected(list []string) (paths []string) {
	forms := []func(text string) string{
		func(text string) string { return in(hostileName, "events", "q", text) },
		func(text string) string { return in(hostileName, "events", "q", `type:"`+text+`"`, "after", text) },
		func(text string) string { return in(hostileName, "dead", "q", "error:"+text, "after", text) },
		func(text string) string { return in(hostileName, "aggregate", "type", text, "id", text) },
		func(text string) string {
			return in(hostileName, "replay", "verb", text, "q", text, "topic", text, "rate", text)
		},
		func(text string) string { return in(hostileName, "topics", "topic", text) },
		func(text string) string { return in(hostileName, "erase", "q", text, "typed", text) },
		func(text string) string {
			return in(hostileName, "audit", "actor", text, "verb", text, "role", text, "event", text)
		},
		func(text string) string { return in(hostileName, "events/"+url.PathEscape(text)) },
		func(text string) string { return in(url.PathEscape(text), "events") },
		func(text string) string { return in(hostileName, "act/redrive", "id", text) },
		func(text string) string { return in(hostileName, "", "minutes", text) },
		func(text string) string {
			return in(hostileName, "order/limit", "scope", "type", "name", text, "rate", text)
		},
		func(text string) string { return in(hostileName, "topics", "did", text, "topic", text) },
		func(text string) string {
			return "/" + url.PathEscape(text) + "?" + url.QueryEscape(text) + "=" + url.QueryEscape(text)
		},
	}
	for i := range list {
		t := textOf(list, "address", i)
		for j, form := range forms {
			if r.plan.TimesDecide || j == i%len(forms) {
				paths = append(paths, form(t.Text))
			}
		}
	}
	return paths
}
