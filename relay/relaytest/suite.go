package relaytest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// TestPublisher runs the suite, one subtest a case. It fails on every breach of what [publish.Publisher]
// promises, and when an ability that the harness did not deny was never put to use.
func TestPublisher(t *testing.T, harness Harness) {
	t.Helper()
	full := harness.withDefaults()
	problems := full.validate()
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) > 0 {
		return
	}
	used := map[Ability]bool{}
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			result := runCase(t.Context(), &full, c, used)
			for _, note := range result.Notes {
				t.Log(note)
			}
			for _, problem := range result.Problems {
				t.Error(problem)
			}
			if result.Skipped != "" {
				t.Skip(result.Skipped)
			}
		})
	}
	if t.Failed() {
		return // a case that stopped early did not get to use what it was to use
	}
	for _, problem := range unused(&full, used) {
		t.Error(problem)
	}
}

// Result is what became of one case.
type Result struct {
	Case     string
	Problems []string
	Skipped  string   // the harness's reason, where the case did not run
	Notes    []string // parts of the case that did not run, and the reason
}

// Check runs the suite without a test: for tests of a harness, and of the suite itself. It runs the named
// cases, or all where none is named. The last result is about the harness as a whole.
func Check(ctx context.Context, harness Harness, names ...string) []Result {
	full := harness.withDefaults()
	whole := Result{Case: "harness", Problems: full.validate()}
	var results []Result
	if len(whole.Problems) == 0 {
		used := map[Ability]bool{}
		for _, c := range cases() {
			if len(names) == 0 || slices.Contains(names, c.name) {
				results = append(results, runCase(ctx, &full, c, used))
			}
		}
		if len(names) == 0 {
			whole.Problems = unused(&full, used)
		}
	}
	return append(results, whole)
}

// unused lists abilities that the harness claims and that no case got to use.
func unused(h *Harness, used map[Ability]bool) []string {
	var problems []string
	for _, ability := range abilities {
		if _, cannot := h.Cannot[ability]; !cannot && !used[ability] {
			problems = append(problems,
				fmt.Sprintf("harness: %s was never put to use; where the broker cannot do it, say so in Cannot", ability))
		}
	}
	return problems
}

// testCase is one promise. It ends early with an error where it cannot go on.
type testCase struct {
	name  string
	needs []Ability
	run   func(ctx context.Context, e *env) error
}

func cases() []testCase {
	return []testCase{
		{name: "fidelity", run: fidelity},
		{name: "hostile attributes", run: hostileAttributes},
		{name: "acknowledged means stored", run: acknowledgedMeansStored},
		{name: "order", needs: []Ability{Order}, run: order},
		{name: "concurrent", run: concurrent},
		{name: "size limit", needs: []Ability{Limit}, run: sizeLimit},
		{name: "one bad message among good ones/too large", needs: []Ability{Limit}, run: oneTooLarge},
		{name: "one bad message among good ones/rejected", needs: []Ability{RejectMessage}, run: oneRejected},
		{name: "missing topic", needs: []Ability{MissingTopic}, run: missingTopic},
		{name: "pipeline/declared", run: pipelineDeclared},
		{name: "pipeline/order", needs: []Ability{Pipeline, Order}, run: pipelineOrder},
		{name: "pipeline/too large in the middle", needs: []Ability{Pipeline, Order, Limit}, run: pipelineTooLarge},
		{name: "pipeline/rejected in the middle", needs: []Ability{Pipeline, Order, RejectMessage}, run: pipelineRejected},
		{name: "pipeline/stopped in the middle", needs: []Ability{Pipeline, Order, Stop}, run: pipelineStopped},
		{name: "cancelled", run: cancelled},
		{name: "slow", needs: []Ability{Slow}, run: slow},
		{name: "lost acknowledgement", needs: []Ability{LoseAck}, run: lostAck},
		{name: "denied credentials", needs: []Ability{DenyAuth}, run: deniedAuth},
		{name: "restart under load", needs: []Ability{Stop}, run: restartUnderLoad},
		{name: "given up is not sent later", needs: []Ability{Stop, Abandon}, run: abandoned},
		{name: "given up is not sent later/hanging", needs: []Ability{Hang, Abandon}, run: abandonedInAHang},
		{name: "close", run: closing},
	}
}

// runCase runs one case on a topic of its own.
func runCase(ctx context.Context, h *Harness, c testCase, used map[Ability]bool) Result {
	e := &env{harness: h, used: used, possible: map[string]*publish.Message{}}
	e.result.Case = c.name
	for _, ability := range c.needs {
		if reason, cannot := h.Cannot[ability]; cannot {
			e.result.Skipped = fmt.Sprintf("no %s: %s", ability, reason)
			return e.result
		}
	}
	// No case may hang, whatever the publisher does: a case waits on this context at the latest.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	words := strings.FieldsFunc(c.name, func(r rune) bool { return r == ' ' || r == '/' })
	e.topic = strings.ToLower(fmt.Sprintf("relaytest-%s-%s", strings.Join(words[:min(len(words), 3)], "-"),
		rand.Text()[:8]))
	if err := h.MakeTopic(ctx, e.topic); err != nil {
		e.problemf("harness: making topic %s: %v", e.topic, err)
		return e.result
	}
	if err := c.run(ctx, e); err != nil {
		e.problemf("%v", err)
	}
	for _, end := range slices.Backward(e.ends) {
		end()
	}
	e.checkHandovers()
	if err := h.RemoveTopic(context.WithoutCancel(ctx), e.topic); err != nil {
		e.problemf("harness: removing topic %s: %v", e.topic, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.result
}

// env is what a case runs in.
type env struct {
	harness *Harness
	used    map[Ability]bool
	topic   string
	ends    []func() // run at the end, last first
	// failures counts publishes that failed.
	failures atomic.Int64

	mu     sync.Mutex
	result Result
	// possible has what the broker may have stored: all that was sent and not rejected.
	possible  map[string]*publish.Message
	handovers []*handover
}

func (e *env) problemf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.result.Problems) == 20 {
		e.result.Problems = append(e.result.Problems, "and more")
	}
	if len(e.result.Problems) < 20 {
		e.result.Problems = append(e.result.Problems, fmt.Sprintf(format, args...))
	}
}

// use records that an ability had its effect. Only the case's own goroutine may call it.
func (e *env) use(ability Ability) { e.used[ability] = true }

// can tells whether the harness has an ability, for parts of a case, and notes the reason where not.
func (e *env) can(ability Ability) bool {
	reason, cannot := e.harness.Cannot[ability]
	if cannot {
		e.result.Notes = append(e.result.Notes, fmt.Sprintf("without %s: %s", ability, reason))
	}
	return !cannot
}
