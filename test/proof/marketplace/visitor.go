package marketplace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
)

// A step is one request.
type step struct {
	method, path string
	body         any
}

func post(path string, body any) step { return step{http.MethodPost, path, body} }

// nothing is the body of requests that say all in their path.
var nothing = map[string]any{}

// A visitor is one client. It has a few things on their way at a time, each with the steps that it has still to take,
// and takes them in turns.
type visitor struct {
	load   *load
	dice   *rand.Rand
	store  string
	things [][]step
}

// mostThings is how many things a visitor has on their way at most.
const mostThings = 6

// do makes one request. A step of which nobody told what became is asked for again, and refused if it was taken.
func (v *visitor) do(ctx context.Context) {
	switch {
	case v.store == "":
		made, _ := v.load.request(ctx, post("/stores", map[string]any{"name": "a store"}))
		v.store = made.ID
	case len(v.things) < 2 || len(v.things) < mostThings && v.dice.IntN(3) == 0:
		v.begin(ctx)
	default:
		i := v.dice.IntN(len(v.things))
		if _, known := v.load.request(ctx, v.things[i][0]); known {
			v.things[i] = v.things[i][1:]
		}
		v.things = slices.DeleteFunc(v.things, func(steps []step) bool { return len(steps) == 0 })
	}
}

// begin makes a new thing.
func (v *visitor) begin(ctx context.Context) {
	var creation step
	var plan func(answer) []step
	switch n := v.dice.IntN(100); {
	case n < 50:
		creation, plan = v.license()
	case n < 85:
		creation, plan = v.order()
	case n < 95:
		creation, plan = v.ad()
	default:
		creation = post("/media", map[string]any{
			"storeId": v.store, "kind": "photo", "contentType": "image/png", "bytes": 1 + v.dice.IntN(1e6),
		})
		plan = func(answer) []step { return nil }
	}
	made, _ := v.load.request(ctx, creation)
	if made.ID == "" {
		return // it may be there, and nobody knows its name
	}
	if steps := plan(made); len(steps) > 0 {
		v.things = append(v.things, steps)
	}
}

func (v *visitor) license() (step, func(answer) []step) {
	creation := post("/licenses", map[string]any{"storeId": v.store, "number": fmt.Sprintf("LIC-%d", v.dice.IntN(1e9))})
	return creation, func(made answer) []step {
		at := "/licenses/" + made.ID
		reject := post(at+"/reject", map[string]any{"reason": "the photo is blurred"})
		resubmit, verify := post(at+"/resubmit", nothing), post(at+"/verify", nothing)
		return any1(v.dice, [][]step{{verify}, {reject, resubmit, verify}, {reject, resubmit, reject, resubmit, verify}})
	}
}

func (v *visitor) order() (step, func(answer) []step) {
	lines := make([]map[string]any, 1+v.dice.IntN(3))
	for i := range lines {
		lines[i] = map[string]any{
			"productId": fmt.Sprintf("p-%d", v.dice.IntN(1000)), "quantity": 1 + v.dice.IntN(5),
			"unitPriceCents": v.dice.IntN(10_000),
		}
	}
	creation := post("/orders", map[string]any{
		"buyerStoreId": v.store, "vendorStoreId": v.store, "currency": "EUR", "lines": lines,
	})
	return creation, func(made answer) []step {
		at := "/orders/" + made.ID
		accept, ship, deliver := post(at+"/accept", nothing), post(at+"/ship", nothing), post(at+"/deliver", nothing)
		pack := post(at+"/lines/"+any1(v.dice, made.LineIDs)+"/pack", nothing)
		card, cash := post(at+"/payments", map[string]any{"method": "card"}),
			post(at+"/payments", map[string]any{"method": "cash"})
		payout, cancel := post(at+"/payouts", nothing), post(at+"/cancel", map[string]any{"reason": "changed my mind"})
		return any1(v.dice, [][]step{
			{accept, pack, card, ship, deliver, payout},
			{accept, pack, ship, deliver, cash, payout},
			{accept, pack, cancel},
			{cancel},
			{post(at+"/expire", nothing)},
		})
	}
}

func (v *visitor) ad() (step, func(answer) []step) {
	creation := post("/ads", map[string]any{"storeId": v.store, "title": "fresh every day", "dailyBudgetCents": 500})
	return creation, func(made answer) []step {
		at := "/ads/" + made.ID
		update := step{http.MethodPatch, at, map[string]any{"title": "fresher", "dailyBudgetCents": 700}}
		figures := post(at+"/rollups", map[string]any{
			"day": fmt.Sprintf("2026-01-%02d", 1+v.dice.IntN(28)), "impressions": 100, "clicks": 7, "spentCents": 350,
		})
		// The figures come twice, as from a nightly job that was started again.
		return []step{
			update, post(at+"/pause", nothing), post(at+"/activate", nothing), figures, figures, post(at+"/expire", nothing),
		}
	}
}

func any1[T any](dice *rand.Rand, list []T) T { return list[dice.IntN(len(list))] }
