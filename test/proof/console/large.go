package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// What is hard to show: a number that JavaScript does not have, a name with slashes, and a megabyte.
const (
	exactNumber   = "12345678901234567890.123456789"
	slashedName   = "kits/home & office/50%/ü"
	fillerOfLarge = 1_000_000
)

// largeEvent is an event with all of it.
func largeEvent() outbox.Event {
	return priceChanged.New(slashedName, data{
		"currency": "EUR", "ledger": json.Number(exactNumber), "filler": strings.Repeat("x", fillerOfLarge),
	})
}

// large looks at what is in this event, and at the page of its aggregate.
func (r *run) large(ctx context.Context, t *tab) error {
	id, err := r.event(ctx, "e.event_type = 'price_changed' AND e.aggregate_id LIKE 'kits/%'")
	if err != nil {
		return err
	}
	if _, err := t.Open(ctx, t.address+inShop("events/"+id)); err != nil {
		return err
	}
	if err := t.Click(ctx, "button", "Show the payload"); err != nil {
		return err
	}
	if err := t.Wait(ctx, "#payload", ""); err != nil {
		return err
	}
	var shown string
	if err := t.Eval(ctx, `return document.getElementById('payload').innerText`, nil, &shown); err != nil {
		return err
	}
	r.report.Verbs["a large payload"] = ""
	if !strings.Contains(shown, exactNumber) || strings.Count(shown, "x") < fillerOfLarge {
		r.report.Verbs["a large payload"] = fmt.Sprintf("%d characters are shown, without the number: %t", len(shown),
			!strings.Contains(shown, exactNumber))
	}
	if err := t.Click(ctx, "dl.facts a", "product/"+slashedName); err != nil {
		return err
	}
	return t.Wait(ctx, "main tbody a.mono", id)
}
