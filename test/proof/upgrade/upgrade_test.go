package upgrade_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/upgrade"
)

const root = "../../.."

func TestMain(m *testing.M) {
	status := goroutines.Run(m, goroutines.Linked)
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(status)
}

// folder has the programs of this tree, which are both sides here; they are built once.
var (
	folder   string
	programs = sync.OnceValues(func() (_ upgrade.Programs, err error) {
		if folder, err = os.MkdirTemp("", "proof-upgrade-test-"); err != nil {
			return upgrade.Programs{}, err
		}
		return upgrade.Build(context.Background(), root, folder)
	})
)

// plan is a small run from this tree to itself.
func plan(t *testing.T) upgrade.Plan {
	t.Helper()
	sides, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	p := upgrade.Short()
	p.Each, p.Things, p.Old = 60, 40, upgrade.Old{Commit: strings.Repeat("0", 40), Why: "a test"}
	p.Postgres, p.NATS, p.Folder = services.Postgres18(), services.NATS(), t.TempDir()
	p.OldPrograms, p.NewPrograms = sides, sides
	if p.Outbox, err = upgrade.Compare(root, root, "outbox"); err != nil {
		t.Fatal(err)
	}
	if p.Inbox, err = upgrade.Compare(root, root, "inbox"); err != nil {
		t.Fatal(err)
	}
	return p
}

// What a migration could break must be found, and be called what it is; one that breaks nothing passes.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start int
		fault string
		want  string
		// patience is for what never comes. Defaults to the proof's.
		patience time.Duration
	}{
		"nothing, where nothing is migrated": {},
		"nothing, from an older version":     {start: 11},
		"a column that relays use has another name": {
			fault: "ALTER TABLE {schema}.outbox_relays RENAME COLUMN token TO secret",
			want:  "in the leg old on new", patience: 6 * time.Second,
		},
		"a function that producers call is gone": {
			fault: "DROP FUNCTION {schema}.outbox_emit", want: "the old producer ended by itself",
		},
		"a trigger takes some events for published": {
			fault: `CREATE FUNCTION {schema}.eat() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN
					IF NEW.aggregate_id LIKE '%7' THEN NEW.state := 6; NEW.published_at := now(); END IF;
					RETURN NEW;
				END $$;
				CREATE TRIGGER eat BEFORE INSERT ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION {schema}.eat()`,
			want: "lost: ", patience: 6 * time.Second,
		},
		"consumers may not mark any more": {
			fault: "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {schema}_consumer",
			want:  "effects of the old consumer", patience: 6 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(t)
			p.Start, p.Fault, p.Patience = c.start, c.fault, cmp.Or(c.patience, p.Patience)
			report, err := upgrade.Run(t.Context(), p, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			wanted(t, report.Problems(), c.want)
			var line strings.Builder
			ok, err := report.Print(&line)
			if err != nil || ok != (c.want == "") || !strings.HasSuffix(line.String(), fmt.Sprintf(" ok=%t\n", ok)) {
				t.Errorf("it printed %q, and %v", line.String(), err)
			}
		})
	}
}

// wanted fails if the problems are not those that were planted.
func wanted(t *testing.T, problems []string, want string) {
	t.Helper()
	all := strings.Join(problems, "\n")
	if want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("want %q, the problems are:\n%s", want, all)
	}
}

// An old publisher that does not start on the schema with which the run begins is no proof at all.
func TestAnOldRelayThatDoesNotStart(t *testing.T) {
	t.Parallel()
	p := plan(t)
	p.Start = relay.SchemaVersion - 1
	want := fmt.Sprintf("has version %d", p.Start)
	if _, err := upgrade.Run(t.Context(), p, t.Output()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it ended with %v", err)
	}
}

// Whoever goes on before a schema that is too old, or does not say what to do, is found.
func TestRejected(t *testing.T) {
	t.Parallel()
	script := func(text string) string {
		file := filepath.Join(t.TempDir(), "publisher")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const words = "echo 'the outbox has version 8, this relay needs 9: run `outboxctl migrate up`'"
	for name, c := range map[string]struct{ publisher, want string }{
		"says all":          {script(strings.ReplaceAll(words, "`", "") + "; exit 1"), ""},
		"ends well":         {script(strings.ReplaceAll(words, "`", "")), "ended with 0"},
		"names no version":  {script("echo 'run outboxctl migrate up'; exit 1"), "did not say"},
		"does not say what": {script("echo 'the outbox has version 8, this relay needs 9'; exit 1"), "did not say"},
		"goes on":           {script("exec tail -f /dev/null"), "goes on before a schema of version 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(t)
			p.NewPrograms.Publisher = c.publisher
			if strings.HasPrefix(c.want, "goes on") {
				p.Patience = 2 * time.Second
			}
			problem, err := upgrade.Rejected(t.Context(), p, 8, 9)
			if err != nil || (problem == "") != (c.want == "") || !strings.Contains(problem, c.want) {
				t.Errorf("want %q, it found %q and %v", c.want, problem, err)
			}
		})
	}
}

// Each thing that must be there is missed when it is not.
func TestProblems(t *testing.T) {
	t.Parallel()
	verdict := func(history check.History) *check.Verdict { return history.Check(check.Floor{}) }
	well := check.History{
		{Tx: &check.Tx{Key: "k", Outcome: check.OK, Events: []check.Event{{ID: check.ID{1}, Topic: "t"}}}},
		{Delivery: &check.Delivery{Index: 1, ID: check.ID{1}, Topic: "t"}},
		{End: &check.End{Drained: true}},
	}
	p := upgrade.Plan{Each: 10, Kills: 1, Outbox: upgrade.Migrations{Old: 12, New: 13, Shared: 12}}
	for want, spoil := range map[string]func(*upgrade.Report){
		"": func(*upgrade.Report) {},
		"the old relays published 0 events in the leg old on new, at least 10 must be": func(r *upgrade.Report) {
			r.Legs[2].Events = 0
		},
		"the new relays published 9 events in the leg new on old, at least 10 must be": func(r *upgrade.Report) {
			r.Legs[0].Events = 9
		},
		"the old relays published 0 events in the leg taken back, at least 10 must be": func(r *upgrade.Report) {
			r.Legs = slices.DeleteFunc(r.Legs, func(l upgrade.Leg) bool { return l.Name == "taken_back" })
		},
		"lost: ":                    func(r *upgrade.Report) { r.Verdict = verdict(slices.Delete(slices.Clone(well), 1, 2)) },
		"too little was tested: co": func(r *upgrade.Report) { r.Verdict = verdict(well[2:]) },
		"a clear word":              func(r *upgrade.Report) { r.Rejection = "a clear word" },
		"the schema is at version 12, and not at 13":                 func(r *upgrade.Report) { r.Version = 12 },
		"1 events are dead":                                          func(r *upgrade.Report) { r.Dead = 1 },
		"1 events were charged":                                      func(r *upgrade.Report) { r.Charged = 1 },
		"consumers gave up 1 messages":                               func(r *upgrade.Report) { r.GivenUp = 1 },
		"it did not drain":                                           func(r *upgrade.Report) { r.Drained = false },
		"too little was tested: 1 relays were killed":                func(r *upgrade.Report) { r.Kills = 1 },
		"there are 9 events of the old producer on the new schema":   func(r *upgrade.Report) { r.OldEmitted = 9 },
		"there are 9 events of the new producer on the new schema":   func(r *upgrade.Report) { r.NewEmitted = 9 },
		"there are 9 effects of the old consumer on the new schema":  func(r *upgrade.Report) { r.OldHandled = 9 },
		"there are 9 effects of the new consumer on the new schema,": func(r *upgrade.Report) { r.NewHandled = 9 },
	} {
		r := upgrade.Full(p)
		r.Verdict = verdict(well)
		spoil(r)
		wanted(t, r.Problems(), want)
	}
}
