package pgstore

import (
	"slices"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// The points at which the death of a process is tested, around a settle and what may be in it.

func beforeSettle(settle *core.Settle) {
	if !crash.Built {
		return
	}
	crash.Point("settle.before")
	if len(settle.Retry) > 0 {
		crash.Point("retry.before")
	}
	if len(settle.Park) > 0 {
		crash.Point("park.before")
	}
	if quarantines(settle) {
		crash.Point("quarantine.before")
	}
}

func afterSettle(settle *core.Settle) {
	if !crash.Built {
		return
	}
	crash.Point("settle.after_commit")
	if len(settle.Retry) > 0 {
		crash.Point("retry.after")
	}
	if len(settle.Park) > 0 {
		crash.Point("park.after")
	}
	if len(settle.Dead) > 0 {
		crash.Point("dead.after_commit")
	}
	if quarantines(settle) {
		crash.Point("quarantine.after")
	}
}

func quarantines(settle *core.Settle) bool {
	return slices.ContainsFunc(settle.Dead, func(death core.Death) bool { return death.Reason == "crash_suspect" })
}

// The points around a beat: that of a new relay, and that of one which holds lanes.

func beforeBeat(said *core.Heartbeat) {
	if said.Number > 0 && len(said.Lanes) > 0 {
		crash.Point("renew.before")
	}
}

func afterBeat(said *core.Heartbeat) {
	if said.Register != nil {
		crash.Point("register.after")
	}
	if said.Number > 0 && len(said.Lanes) > 0 {
		crash.Point("renew.after")
	}
}
