package console

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// databaseScreen is what the screen of the database has.
type databaseScreen struct {
	// Reasons are what somebody should look at, Bad whether one of them is a fault.
	Reasons []string
	Bad     bool
	Found   *operator.Database
	Tables  []tableLine
	Writers []operator.OpenWriter
	Grants  []grantLine
	Lookups []lookupLine
}

// tableLine is a table with its shares in words; empty: not known.
type tableLine struct {
	operator.Table
	HOTShare, DeadShare string
}

// grantLine is a role with what makes it right.
type grantLine struct {
	operator.RoleGrants
	Fix string
	// Number tells the SQL of one from that of another on the page.
	Number int
}

// lookupLine is an optional look-up, in words.
type lookupLine struct {
	operator.LookupState
	Class, Says, Do string
}

// heldLong is from when on a snapshot is worth a look: vacuum has come by meanwhile, and took nothing away.
const heldLong = 10 * time.Minute

func (q *request) databasePage() error {
	s := &databaseScreen{}
	var grants []operator.RoleGrants
	var lookups []operator.LookupState
	of := q.outbox
	for _, read := range []func(context.Context) error{
		func(ctx context.Context) (err error) {
			s.Found, err = of.system.database.get(ctx, "", func(ctx context.Context) (*operator.Database, error) {
				found, err := of.op.Database(ctx)
				return &found, err
			})
			return err
		},
		func(ctx context.Context) (err error) {
			s.Writers, err = of.system.writers.get(ctx, "", of.op.OpenWriters)
			return err
		},
		func(ctx context.Context) (err error) {
			grants, err = of.system.grants.get(ctx, "", of.op.Grants)
			return err
		},
		func(ctx context.Context) (err error) {
			lookups, err = of.system.lookups.get(ctx, "", of.op.LookupStates)
			return err
		},
	} {
		if err := read(q.Context()); err != nil {
			return err
		}
	}
	schema := cmp.Or(of.Schema, outbox.DefaultSchema)
	s.tables()
	s.grants(grants, schema)
	s.lookups(lookups, schema)
	s.report()
	return q.ok("database", "Database", 15, s)
}

func (s *databaseScreen) tables() {
	for _, t := range s.Found.Tables {
		line := tableLine{Table: t}
		if share, known := t.HOTShare(); known {
			line.HOTShare = percent(share)
		}
		if all := t.Rows + t.Dead; all > 0 {
			line.DeadShare = percent(float64(t.Dead) / float64(all))
		}
		s.Tables = append(s.Tables, line)
	}
}

func (s *databaseScreen) grants(roles []operator.RoleGrants, schema string) {
	for i, role := range roles {
		s.Grants = append(s.Grants, grantLine{role, role.Fix(schema), i + 1})
	}
}

func (s *databaseScreen) lookups(states []operator.LookupState, schema string) {
	for _, state := range states {
		line := lookupLine{LookupState: state}
		do := fmt.Sprintf("outboxctl migrate lookups add %s --schema %s", state.Lookup, schema)
		switch {
		case state.Builder != 0:
			line.Class, line.Says = "warn", fmt.Sprintf("is being built by process %d", state.Builder)
		case state.There && !state.Valid:
			line.Class, line.Says, line.Do = "bad", "its building was cut off: it costs, and answers nothing", do
		case state.There:
			line.Class, line.Says = "good", "there"
		default:
			line.Class, line.Says, line.Do = "plain", "not there", do
		}
		s.Lookups = append(s.Lookups, line)
	}
}

// report says what somebody should look at.
func (s *databaseScreen) report() {
	add := func(bad bool, format string, args ...any) {
		s.Bad = s.Bad || bad
		s.Reasons = append(s.Reasons, fmt.Sprintf(format, args...))
	}
	for _, r := range s.Found.Retention {
		if r.HaltedAt != nil {
			add(true, "Retention of %s rows deletes nothing: %s. Look with outboxctl prune --dry-run.", r.Kind, r.HaltReason)
		}
	}
	for _, h := range s.Found.Snapshots {
		if h.Since != nil && s.Found.At.Sub(*h.Since) >= heldLong {
			add(false, "A transaction is open for %s, and old versions of rows pile up since then: end what holds it open.",
				span.Of(s.Found.At.Sub(*h.Since)))
			break // the oldest is the first
		}
	}
	for _, t := range s.Tables {
		if t.Dead > t.Rows && t.Dead > manyDead {
			add(false, "%s has more old versions of rows than rows: vacuum does not keep up.", t.Name)
		}
	}
	wrong := 0
	for _, g := range s.Grants {
		if g.Fix != "" {
			wrong++
		}
	}
	if wrong > 0 {
		add(false, "%s rights too few or too many.", counted(wrong, "role has", "roles have"))
	}
	for _, l := range s.Lookups {
		if l.Class == "bad" {
			add(false, "The look-up %s: %s.", l.Lookup, l.Says)
		}
	}
}

// manyDead is from how many old versions on they matter.
const manyDead = 10_000

// Class is how the sentence looks.
func (s *databaseScreen) Class() string {
	switch {
	case s.Bad:
		return "bad"
	case len(s.Reasons) > 0:
		return "warn"
	default:
		return "good"
	}
}

// percent writes a share. What is little is not nothing, and what is nearly all is not all.
func percent(share float64) string {
	switch {
	case share > 0 && share < 0.01:
		return "<1%"
	case share > 0.99 && share < 1:
		return ">99%"
	default:
		return fmt.Sprintf("%.0f%%", share*100)
	}
}

// sizeOf writes bytes as people do.
func sizeOf(bytes int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	size, unit := float64(bytes), 0
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	if unit == 0 || size >= 10 {
		return fmt.Sprintf("%.0f %s", size, units[unit])
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
