package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
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
	// Counted is the digest of the events that were counted: others that meet the filter later are not erased.
	Counted string
}

// digest tells a set of events from any other.
func digest(events []outbox.ID) string {
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b outbox.ID) int { return slices.Compare(a[:], b[:]) })
	sum := sha256.New()
	for _, id := range slices.Compact(events) {
		sum.Write(id[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// longestCount is for how long events are looked for, so that whoever asks hears something in time.
const longestCount = 8 * time.Second

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
	ctx, cancel := context.WithTimeout(q.Context(), longestCount)
	defer cancel()
	plan, err = q.outbox.op.PlanErasure(ctx, filter, mostErased)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return p, plan, invalid("To find these takes longer than %s, because no index helps. Add an aggregate or a type, "+
			"or use outboxctl events erase.", span.Of(longestCount))
	}
	if tooMany := (*operator.TooManyError)(nil); errors.As(err, &tooMany) {
		return p, plan, invalid("These are more than %s events. Ask for fewer, or use outboxctl events erase.",
			number(mostErased))
	}
	p.planned(plan)
	return p, plan, err
}

// confirmErasure shows what would be erased.
func (q *request) confirmErasure() error {
	p, plan, err := q.erasure()
	if err != nil {
		return err
	}
	p.Action, p.Counted = outbox.NewID().String(), digest(plan.Events)
	return q.ok("erase", "Erase events", 0, p)
}

// erase does it, to the events that were counted when the form was made. A form that is sent twice is done once, and
// one that was cut off goes on.
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
	erased, err := q.outbox.op.ErasedBy(q.Context(), action.ID)
	if err != nil {
		return err
	}
	p.Done = len(erased)
	same := q.text("counted") == digest(slices.Concat(plan.Events, erased))
	if p.Done > 0 && (p.Count == 0 || !same) || p.Filter == "" {
		return q.ok("erase", "Erase events", 0, p)
	}
	if p.Counted = digest(plan.Events); !same {
		p.Problem = "Others meet this filter now than those that were counted. Nothing is erased: these are the new counts."
	} else if q.text("typed") != strconv.Itoa(p.Count+p.Done) {
		p.Problem = "Type how many events are meant."
	}
	if p.Problem != "" {
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
