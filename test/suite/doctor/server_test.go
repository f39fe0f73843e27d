package doctor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestDoctorOfTheServer: what is set for a whole server, on one of the test's own; and a standby is no place for an
// outbox.
func TestDoctorOfTheServer(t *testing.T) {
	t.Parallel()
	own, err := cluster.New(t.Context(), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	e := newEnv(t, pgtest.Server{Name: "own", URL: own.URL()}, build(t))
	for _, fault := range []struct{ setting, code string }{
		{"fsync", "not_durable"}, {"full_page_writes", "not_durable"}, {"autovacuum", "autovacuum_off"},
	} {
		e.exec("ALTER SYSTEM SET " + fault.setting + " = off")
		e.exec("SELECT pg_reload_conf()")
		e.untilFound(fault.code)
		report := e.doctor(e.url)
		if got := codes(report); !slices.Equal(got, []string{fault.code}) {
			t.Errorf("%s: found %q: %+v", fault.setting, got, report)
		}
		for _, finding := range report.Findings {
			e.apply(finding)
		}
		e.untilFound()
	}
	// The slots of a shared server are others' as well.
	e.inflict(fault{
		code: "slot_unused", begin: []string{"SELECT pg_create_physical_replication_slot('{database}', true)"},
		args: []string{"--slot-megabytes", "0"},
	})
	standby, err := own.Standby(t.Context(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := codes(e.doctor(standby.URL())); !slices.Equal(got, []string{"standby"}) {
		t.Errorf("a standby: found %q", got)
	}
}

// untilFound waits until new sessions have a setting that was changed: the server reads its files when it gets to it.
func (e *env) untilFound(want ...string) {
	e.t.Helper()
	eventually.True(e.t, "the setting is in force", func() bool {
		return slices.Equal(codes(e.again(e.url, fault{})), want)
	})
}

// TestDoctorOfTheClock: a machine whose clock is wrong says so, whichever way.
func TestDoctorOfTheClock(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	for _, wrong := range []time.Duration{time.Minute, -time.Minute} {
		config, err := pgx.ParseConfig(e.url)
		if err != nil {
			t.Fatal(err)
		}
		report := doctor.Run(context.WithoutCancel(t.Context()), doctor.Config{
			Database: config, Schema: e.schema, OldTransaction: time.Hour,
			Now: func() time.Time { return time.Now().Add(wrong) },
		})
		if got := codes(report); !slices.Equal(got, []string{"clock_differs"}) {
			t.Errorf("%s: found %q: %+v", wrong, got, report)
		}
	}
}
