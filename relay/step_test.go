package relay

import (
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestAStepSaysWhatTheCoreSaid: each word of the core has its word here, and those of a class are the same everywhere.
func TestAStepSaysWhatTheCoreSaid(t *testing.T) {
	t.Parallel()
	for did, want := range map[core.Do]StepKind{
		core.DidAcquire: StepAcquire, core.DidRenew: StepRenew, core.DidRelease: StepRelease, core.DidLose: StepLose,
		core.DidPublish: StepPublish, core.DidAck: StepAck, core.DidRefuse: StepPublishFailed, core.DidSettle: StepSettle,
		core.DidCharge: StepCharge, core.DidPause: StepPause, core.DidResume: StepResume, core.DidFail: StepFail,
		core.DidAlarm: StepAlarm, core.DidForget: StepForget, core.DidSettleRequest: StepSettleRequest,
	} {
		if got := newStep(&core.Step{Do: did}).Kind; got != want {
			t.Errorf("%s became %s", did, got)
		}
	}
	for result, want := range map[core.Result]SettleResult{
		core.Applied: SettleApplied, core.Stale: SettleStale, core.Unchanged: SettleUnchanged,
		core.Uncertain: SettleUncertain,
	} {
		if got := newStep(&core.Step{Do: core.DidSettle, Result: result}).Result; got != want {
			t.Errorf("%s became %s", result, got)
		}
	}
	for class, want := range map[core.Class]publish.Class{
		core.Acknowledged: publish.Published, core.Rejected: publish.Rejected, core.Terminal: publish.Terminal,
		core.RouteFault: publish.TopicFault, core.Unknown: publish.Unknown, core.NotSent: publish.NotSent,
	} {
		for _, did := range []core.Do{core.DidAck, core.DidRefuse, core.DidCharge} {
			if got := newStep(&core.Step{Do: did, Class: class}).Class; got != want {
				t.Errorf("%s of class %s became %q", did, want, got)
			}
		}
	}
	if more := core.Class(6).String(); more != "" {
		t.Errorf("there is a class %s that is not looked at here", more)
	}
	if got := newStep(&core.Step{Do: core.DidAcquire}).Class; got != "" {
		t.Errorf("a lane that was taken has the class %q", got)
	}
	calls := slices.Compact(slices.Sorted(slices.Values(Calls())))
	if len(calls) != 18 || !slices.Contains(calls, string(core.OpSettle)) {
		t.Errorf("the calls are %q", calls)
	}
}
