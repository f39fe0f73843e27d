package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// mostErased is how many events a form erases, so that the page answers in time; eraseBatch how many of them a
// transaction does, for which others wait.
const (
	mostErased = 5_000
	eraseBatch = 1_000
)

// erasePage is what an erasure would come to, and what it came to.
type erasePage struct {
	Filter string
	// Erased and Kept are events by state, or by what keeps them.
	Erased, Kept []countOf
	Unasked      []string
	Count        int
	Action       string
	Reason       string
	Problem      string
	// Done is how many this decision has erased.
	Done int
}

// planned fills in what a plan has counted.
func (p *erasePage) planned(plan operator.ErasurePlan) {
	p.Erased, p.Kept, p.Unasked, p.Count = counts(plan.Erased), counts(plan.Kept), plan.Unasked, len(plan.Events)
}

// counts puts the most first.
func counts(of map[string]int) (list []countOf) {
	for name, n := range of {
		list = append(list, countOf{name, int64(n)})
	}
	slices.SortFunc(list, func(a, b countOf) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return list
}

// erasure reads which events are meant, and counts them. It changes nothing.
func (q *request) erasure() (p *erasePage, plan operator.ErasurePlan, err error) {
	p = &erasePage{Filter: q.text("q")}
	if p.Filter == "" {
		return p, plan, nil
	}
	filter, err := q.filter(p.Filter)
	if err != nil {
		return p, plan, err
	}
	plan, err = q.outbox.op.PlanErasure(q.Context(), filter, mostErased)
	if tooMany := (*operator.TooManyError)(nil); errors.As(err, &tooMany) {
		return p, plan, invalid("These are more than %s events. Ask for fewer, or use outboxctl events erase.",
			number(mostErased))
	}
	p.planned(plan)
	return p, plan, err
}

// confirmErasure shows what would be erased.
func (q *request) confirmErasure() error {
	p, _, err := q.erasure()
	if err != nil {
		return err
	}
	p.Action = outbox.NewID().String()
	return q.ok("erase", "Erase events", 0, p)
}

// erase does it. A form that is sent twice is done once.
func (q *request) erase() error {
	action, err := q.action()
	if err != nil {
		return err
	}
	p, plan, err := q.erasure()
	if err != nil {
		return err
	}
	p.Action, p.Reason = action.ID.String(), action.Reason
	if p.Done, err = q.outbox.op.ErasedBy(q.Context(), action.ID); err != nil {
		return err
	}
	if p.Done > 0 && p.Count == 0 || p.Filter == "" {
		return q.ok("erase", "Erase events", 0, p)
	}
	if typed := q.text("typed"); typed != strconv.Itoa(p.Count) && typed != strconv.Itoa(p.Count+p.Done) {
		p.Problem = "Type how many events are meant. Perhaps there are others now than when the page was opened."
		q.show(http.StatusBadRequest, "erase", &page{Title: "Erase events", Data: p})
		return nil
	}
	for part := range slices.Chunk(plan.Events, eraseBatch) {
		results, err := q.outbox.op.Erase(q.Context(), action, part...)
		if err != nil {
			return err
		}
		for _, result := range results {
			if result.Outcome == operator.Done {
				p.Done++
			}
		}
	}
	return q.ok("erase", "Erase events", 0, p)
}
