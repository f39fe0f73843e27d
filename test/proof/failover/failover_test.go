package failover

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "relay" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := torture.RunRelay(ctx, os.Args[2], torture.Relay)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the relays end a second sooner
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

func proof(t *testing.T) *Proof {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Proof{
		Broker: services.NATS(), Folder: t.TempDir(), Executable: executable, Short: true, Seed: 1, Say: t.Output(),
	}
}

// TestSmallArms: the arms without load.
func TestSmallArms(t *testing.T) {
	t.Parallel()
	t.Run("standby", func(t *testing.T) {
		t.Parallel()
		if standby, err := proof(t).standby(t.Context()); err != nil || !standby.ok() {
			t.Errorf("%+v, %v", standby, err)
		}
	})
	t.Run("restore", func(t *testing.T) {
		t.Parallel()
		if restore, err := proof(t).restore(t.Context()); err != nil || !restore.ok() {
			t.Errorf("%+v, %v", restore, err)
		}
	})
}

// TestTheStrictArmFindsALossyPublisher: a bug behind a failover is found.
func TestTheStrictArmFindsALossyPublisher(t *testing.T) {
	t.Parallel()
	p := proof(t)
	p.mutant = torture.MutantDrop
	report, err := p.strict(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Verdict.Count(check.Lost) == 0 {
		t.Error("messages were dropped, and none is missed")
	}
	j := &examine{}
	if j.whole("strict", report); len(j.problems) == 0 {
		t.Error("the arm passes")
	}
}

// history is a run in the checker's words: one committed event that was delivered, and what else there was.
func verdict(more ...check.Record) *check.Verdict {
	id := outbox.NewID()
	list := check.History{
		{Tx: &check.Tx{Key: "1", Events: []check.Event{{ID: id, Type: "t", Aggregate: "a/1", Key: "a/1", Topic: "x"}}}},
		{Tx: &check.Tx{Key: "1", Outcome: check.OK}},
		{Delivery: &check.Delivery{Index: 1, ID: id, Type: "t", Key: "a/1", Topic: "x"}},
		{Row: &check.Row{ID: id, Seq: 1, State: check.Published, Type: "t", Published: true}},
	}
	list = append(append(list, more...), check.Record{End: &check.End{Drained: true, Dumped: true}})
	return list.Check(check.Floor{})
}

func phantom() check.Record {
	return check.Record{Delivery: &check.Delivery{Index: 2, ID: outbox.NewID(), Type: "t", Key: "a/2", Topic: "x"}}
}

// vanished is an event that was published and then taken back by a failover.
func vanished() []check.Record {
	id := outbox.NewID()
	return []check.Record{
		{Tx: &check.Tx{Key: "3", Events: []check.Event{{ID: id, Type: "t", Aggregate: "a/4", Key: "a/4", Topic: "x"}}}},
		{Tx: &check.Tx{Key: "3", Outcome: check.Undone}},
		{Delivery: &check.Delivery{Index: 3, ID: id, Type: "t", Key: "a/4", Topic: "x"}},
	}
}

// reversed are two events of an aggregate that arrived in the wrong order.
func reversed() (list []check.Record) {
	for version := range uint64(2) {
		id := outbox.NewID()
		event := check.Event{ID: id, Type: "t", Aggregate: "a/5", Key: "a/5", Topic: "x", Version: version + 1}
		list = append(list,
			check.Record{Tx: &check.Tx{Key: fmt.Sprint("r", version), Events: []check.Event{event}, Outcome: check.OK}},
			check.Record{Delivery: &check.Delivery{Index: 11 - version, ID: id, Type: "t", Key: "a/5", Topic: "x"}},
			check.Record{Row: &check.Row{ID: id, Seq: int64(version) + 10, State: check.Published, Type: "t", Published: true}})
	}
	return list
}

func lost() []check.Record {
	id := outbox.NewID()
	return []check.Record{
		{Tx: &check.Tx{Key: "2", Events: []check.Event{{ID: id, Type: "t", Aggregate: "a/3", Key: "a/3", Topic: "x"}}}},
		{Tx: &check.Tx{Key: "2", Outcome: check.OK}},
	}
}

func crashing(n int, more ...check.Record) *check.Verdict {
	for range n {
		more = append(more, check.Record{Fault: &check.Fault{Kind: check.DatabaseDown, From: 1, To: 2}})
	}
	return verdict(more...)
}

// good is a result that passes.
func good() *Result {
	return &Result{
		Strict:  &torture.Report{Verdict: verdict()},
		Async:   &Async{Report: &torture.Report{Verdict: verdict(vanished()...), Vanished: 1}, Wanted: 2, Moved: []int{1, 1}},
		Crashes: &torture.Report{Verdict: crashing(enoughCrashes), Vanished: 1},
		Control: &torture.Report{Verdict: verdict(phantom())},
		Waits:   &Waits{Report: &torture.Report{Verdict: verdict()}, Seen: enoughSeen, Cancelled: 1, Rejected: 1, Hung: 1},
		Standby: &Standby{Named: true, Patient: true, Served: true},
		Restore: &Restore{Paused: true, WouldSend: 2, Pending: 2, Sent: 2, Again: 2},
		Killed:  &Killed{Wanted: 1, Kills: 1, Events: 1},
	}
}

// TestEveryMustCanBeMissed: each thing that the proof demands makes it fail when it is missing.
func TestEveryMustCanBeMissed(t *testing.T) {
	t.Parallel()
	if problems := good().Problems(); len(problems) > 0 {
		t.Fatalf("a good result: %v", problems)
	}
	for name, spoil := range map[string]func(*Result){
		"strict: phantom":       func(r *Result) { r.Strict.Verdict = verdict(phantom()) },
		"strict: ":              func(r *Result) { r.Strict.Verdict = verdict(lost()...) },
		"strict: a relay ended": func(r *Result) { r.Strict.Problems = []string{"a relay ended"} },
		"asynchronous: 1 phantoms": func(r *Result) {
			r.Async.Report.Verdict = verdict(append(vanished(), phantom())...)
		},
		"asynchronous: no commit was taken": func(r *Result) { r.Async.Report.Verdict = verdict() },
		"asynchronous: nothing was lost":    func(r *Result) { r.Async.Report.Vanished = 0 },
		"asynchronous: lost is 1": func(r *Result) {
			r.Async.Report.Verdict = verdict(append(lost(), vanished()...)...)
		},
		"asynchronous: order_violations": func(r *Result) {
			r.Async.Report.Verdict = verdict(append(reversed(), vanished()...)...)
		},
		"asynchronous: a relay ended":  func(r *Result) { r.Async.Report.Problems = []string{"a relay ended"} },
		"asynchronous: 1 failovers":    func(r *Result) { r.Async.Moved = []int{1} },
		"asynchronous: no floor moved": func(r *Result) { r.Async.Moved = []int{1, 0} },
		"waits: phantom":               func(r *Result) { r.Waits.Report.Verdict = verdict(phantom()) },
		"C4: 0 sessions":               func(r *Result) { r.Waits.Hung = 0 },
		"C4: 1 sessions":               func(r *Result) { r.Waits.Arrived = 1 },
		"C5: 0 waits":                  func(r *Result) { r.Waits.Cancelled = 0 },
		"C5: 1 waits were cancelled, the relays refused 0": func(r *Result) {
			r.Waits.Rejected = 0
		},
		"C5: 1 waits were cancelled, the relays refused 1": func(r *Result) {
			r.Waits.Early = 1
		},
		"C5: 1 waits":                                 func(r *Result) { r.Waits.Seen = 0 },
		"C21: named false":                            func(r *Result) { r.Standby.Named = false },
		"C21: named true, patient false":              func(r *Result) { r.Standby.Patient = false },
		"C21: named true, patient true, served false": func(r *Result) { r.Standby.Served = false },
		"crashes: 1 phantoms": func(r *Result) {
			r.Crashes.Verdict = crashing(enoughCrashes, phantom())
		},
		"crashes: no commit was lost":             func(r *Result) { r.Crashes.Vanished = 0 },
		"crashes: 1 are too few":                  func(r *Result) { r.Crashes.Verdict = crashing(1) },
		"control: ":                               func(r *Result) { r.Control.Verdict = verdict() },
		"restore: {Paused:false":                  func(r *Result) { r.Restore.Paused = false },
		"restore: {Paused:true WouldSend:1":       func(r *Result) { r.Restore.WouldSend = 1 },
		"restore: {Paused:true":                   func(r *Result) { r.Restore.Sent = 1 },
		"killed: {Wanted:1 Kills:0":               func(r *Result) { r.Killed.Kills = 0 },
		"killed: {Wanted:1 Kills:1 Events:0":      func(r *Result) { r.Killed.Events = 0 },
		"killed: {Wanted:1 Kills:1 Events:1 Over": func(r *Result) { r.Killed.Overtaken = 1 },
		"restore: ":                               func(r *Result) { r.Restore.Others = 1 },
	} {
		r := good()
		spoil(r)
		problems := r.Problems()
		if len(problems) == 0 || !strings.HasPrefix(problems[0], name) {
			t.Errorf("%s: %q", name, problems)
		}
		var text strings.Builder
		if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "BROKEN: "+name) ||
			!strings.HasSuffix(text.String(), " ok=false\n") {
			t.Errorf("%s: printed %q, %v", name, text.String(), err)
		}
	}
}
