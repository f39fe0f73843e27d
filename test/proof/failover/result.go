package failover

import (
	"fmt"
	"io"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/internal/torture"
)

// Result is what the arms found.
type Result struct {
	Strict, Crashes, Control *torture.Report
	Async                    *Async
	Waits                    *Waits
	Standby                  *Standby
	Restore                  *Restore
	Killed                   *Killed
	Seconds                  float64
}

// examine collects what is wrong.
type examine struct {
	problems []string
}

func (j *examine) demandf(holds bool, format string, args ...any) {
	if !holds {
		j.problems = append(j.problems, fmt.Sprintf(format, args...))
	}
}

// whole demands everything of an arm whose database loses nothing.
func (j *examine) whole(arm string, r *torture.Report) {
	for _, problem := range r.Verdict.Problems() {
		j.demandf(false, "%s: %s", arm, problem)
	}
	for _, missing := range r.Verdict.TooLittle {
		j.demandf(false, "%s: too little: %s", arm, missing)
	}
	j.alive(arm, r)
}

// alive demands that no relay ended by itself.
func (j *examine) alive(arm string, r *torture.Report) {
	for _, problem := range r.Problems {
		j.demandf(false, "%s: %s", arm, problem)
	}
}

// kept are the counters that stay zero although the database lost commits: about what it still has, nothing is
// missing, changed, out of order or left behind.
var kept = []check.Counter{
	check.Lost, check.Corrupted, check.OrderViolations, check.Stuck, check.DuplicatesUnexplained, check.Malformed,
	check.Unresolved,
}

func (j *examine) rest(arm string, r *torture.Report) {
	for _, counter := range kept {
		j.demandf(r.Verdict.Count(counter) == 0, "%s: %s is %d", arm, counter, r.Verdict.Count(counter))
	}
	j.alive(arm, r)
}

// async demands that about what the last primary has nothing is missing, and that every failover could have broken it.
func (j *examine) async(a *Async) {
	const arm = "asynchronous"
	j.rest(arm, a.Report)
	j.demandf(a.Report.Verdict.Count(check.Phantom) == 0, "%s: %d phantoms", arm, a.Report.Verdict.Count(check.Phantom))
	j.demandf(a.Report.Verdict.Count(check.TakenBack) > 0, "%s: no commit was taken back: the arm cannot show it", arm)
	j.demandf(a.Report.Vanished > 0, "%s: nothing was lost: the arm cannot show it", arm)
	j.demandf(len(a.Moved) >= a.Wanted, "%s: %d failovers are too few", arm, len(a.Moved))
	for i, moved := range a.Moved {
		j.demandf(moved > 0, "%s: no floor moved in the gap of failover %d: it shows nothing", arm, i+1)
	}
}

// Problems are what was broken, and what was tested too little.
func (r *Result) Problems() []string {
	j := &examine{}
	j.whole("strict", r.Strict)
	j.async(r.Async)
	j.whole("waits", r.Waits.Report)
	j.demandf(r.Waits.c4(), "C4: %d sessions waited, and %d events were published", r.Waits.Hung, r.Waits.Arrived)
	j.demandf(r.Waits.c5(), "C5: %d waits were cancelled, the relays refused %d answers; of %d events %d were published",
		r.Waits.Cancelled, r.Waits.Rejected, r.Waits.Seen, r.Waits.Early)
	j.demandf(r.Standby.ok(), "C21: named %t, patient %t, served %t", r.Standby.Named, r.Standby.Patient, r.Standby.Served)
	j.rest("crashes", r.Crashes)
	j.demandf(r.Crashes.Verdict.Count(check.Phantom) == 0, "crashes: %d phantoms", r.Crashes.Verdict.Count(check.Phantom))
	j.demandf(r.Crashes.Vanished > 0, "crashes: no commit was lost: the arm tests nothing")
	j.demandf(crashed(r.Crashes) >= enoughCrashes, "crashes: %d are too few", crashed(r.Crashes))
	j.demandf(r.Control.Verdict.Count(check.Phantom) > 0,
		"control: without a barrier there was no phantom: the arm would not show one")
	j.demandf(r.Restore.ok(), "restore: %+v", *r.Restore)
	j.demandf(r.Killed.ok(), "killed: %+v", *r.Killed)
	return j.problems
}

func (w *Waits) c4() bool { return w.Hung > 0 && w.Arrived == 0 }

// enoughCrashes is how often the server must have died.
const enoughCrashes = 2

// enoughSeen is how many events must have become visible without their standby.
const enoughSeen = 20

func (w *Waits) c5() bool {
	return w.Cancelled > 0 && w.Rejected > 0 && w.Seen >= enoughSeen && w.Early == 0
}

func (s *Standby) ok() bool { return s.Named && s.Patient && s.Served }

// ok: what was pending was sent once more, and nothing else was.
func (r *Restore) ok() bool {
	return r.Paused && r.WouldSend == r.Pending && r.Sent == r.Pending && r.Again == r.Pending && r.Others == 0
}

func crashed(r *torture.Report) int { return r.Verdict.Faults[check.DatabaseDown] }

// Print writes the problems, and then the line of figures.
func (r *Result) Print(to io.Writer) error {
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	word := func(ok bool) string {
		if ok {
			return "ok"
		}
		return "broken"
	}
	f := figures.New(Name)
	strict, async := r.Strict.Verdict, r.Async.Report.Verdict
	f.Addf("strict_events", "%d", strict.Count(check.Committed))
	f.Addf("strict_lost", "%d", strict.Count(check.Lost))
	f.Addf("strict_phantom", "%d", strict.Count(check.Phantom))
	f.Addf("strict_order", "%d", strict.Count(check.OrderViolations))
	f.Addf("strict_stuck", "%d", strict.Count(check.Stuck))
	f.Addf("strict_duplicates", "%d", strict.Count(check.Duplicates))
	f.Addf("strict_unexplained", "%d", strict.Count(check.DuplicatesUnexplained))
	f.Addf("async_events", "%d", async.Count(check.Committed))
	f.Addf("async_failovers", "%d", len(r.Async.Moved))
	f.Addf("floors_moved", "%d", r.Async.floors())
	f.Addf("async_order", "%d", async.Count(check.OrderViolations))
	f.Addf("async_phantom", "%d", async.Count(check.Phantom))
	f.Addf("async_lost", "%d", r.Async.Report.Vanished)
	f.Addf("async_taken_back", "%d", async.Count(check.TakenBack))
	f.Addf("async_duplicates", "%d", async.Count(check.Duplicates))
	f.Addf("async_stuck", "%d", async.Count(check.Stuck))
	f.Addf("c4", "%s", word(r.Waits.c4()))
	f.Addf("c5", "%s", word(r.Waits.c5()))
	f.Addf("c5_cancelled", "%d", r.Waits.Cancelled)
	f.Addf("c5_refused", "%d", r.Waits.Rejected)
	f.Addf("c21", "%s", word(r.Standby.ok()))
	f.Addf("crashes", "%d", crashed(r.Crashes))
	f.Addf("crash_events", "%d", r.Crashes.Verdict.Count(check.Committed))
	f.Addf("crash_lost_commits", "%d", r.Crashes.Vanished)
	f.Addf("crash_phantom", "%d", r.Crashes.Verdict.Count(check.Phantom))
	f.Addf("control_phantom", "%d", r.Control.Verdict.Count(check.Phantom))
	f.Addf("restore_paused", "%t", r.Restore.Paused)
	f.Addf("restore_would_send", "%d", r.Restore.WouldSend)
	f.Addf("restore_sent_again", "%d", r.Restore.Again)
	f.Addf("backends_killed", "%d", r.Killed.Kills)
	f.Addf("prepared_events", "%d", r.Killed.Events)
	f.Addf("prepared_overtaken", "%d", r.Killed.Overtaken)
	f.Addf("seconds", "%.0f", r.Seconds)
	f.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, f); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
