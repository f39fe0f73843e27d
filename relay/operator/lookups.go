package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

// Lookup names something optional that answers what people ask of many events. schema/optional/lookups.sql is the same
// for psql.
type Lookup string

// The optional look-ups.
const (
	// LookupType is an index by event type and number. Every emit pays for it.
	LookupType Lookup = "type"
	// LookupPublished is a function that gives the least id of a moment, for whoever asks by time in SQL: ids have an
	// index, and begin with their time. It costs an emit nothing. There is no index on published_at, because every
	// publish would write into every index of the table then.
	LookupPublished Lookup = "published"
)

// Lookups are all of them.
func Lookups() []Lookup { return []Lookup{LookupPublished, LookupType} }

// A LookupState is how an optional look-up stands.
type LookupState struct {
	Lookup Lookup `json:"lookup"`
	// There tells whether it is there, Valid whether it can be used: an index of which the building was cut off cannot.
	There bool `json:"there"`
	Valid bool `json:"valid"`
	// Bytes is the size of an index, Builder the process that builds it.
	Bytes   int64 `json:"bytes,omitempty"`
	Builder int   `json:"builder,omitempty"`
}

// LookupStates tells how the optional look-ups stand.
func (o *Operator) LookupStates(ctx context.Context) ([]LookupState, error) {
	byType, byTime := LookupState{Lookup: LookupType}, LookupState{Lookup: LookupPublished}
	err := o.look(ctx, "lookups", func(l *looking) error {
		err := l.QueryRow(ctx, l.sql("lookups"), l.table("outbox_events"), l.schema).Scan(&byType.There, &byType.Valid,
			&byType.Bytes, &byType.Builder, &byTime.There)
		return err //nolint:wrapcheck // look says what it was
	})
	byTime.Valid = byTime.There
	return []LookupState{byTime, byType}, err
}

// AddLookup adds an optional look-up, as the owner of the tables. An index is built while producers write, and waits
// for the transactions that are open; what a building that was cut off has left is taken away first. It tells whether
// something was to be done.
func (o *Operator) AddLookup(ctx context.Context, lookup Lookup) (added bool, err error) {
	is, err := o.lookupState(ctx, lookup)
	if err != nil || is.Valid {
		return false, err
	}
	if is.Builder != 0 {
		return false, fmt.Errorf("operator: lookup %s: it is being built by pid %d: wait for that one", lookup, is.Builder)
	}
	if is.There { // half of one
		if err := o.define(ctx, lookup, "drop"); err != nil {
			return false, err
		}
	}
	return true, o.define(ctx, lookup, "add")
}

// DropLookup takes an optional look-up away, as the owner of the tables. It tells whether it was there.
func (o *Operator) DropLookup(ctx context.Context, lookup Lookup) (dropped bool, err error) {
	is, err := o.lookupState(ctx, lookup)
	if err != nil || !is.There {
		return false, err
	}
	return true, o.define(ctx, lookup, "drop")
}

func (o *Operator) lookupState(ctx context.Context, lookup Lookup) (LookupState, error) {
	states, err := o.LookupStates(ctx)
	if err != nil {
		return LookupState{}, err
	}
	at := slices.IndexFunc(states, func(is LookupState) bool { return is.Lookup == lookup })
	if at < 0 {
		return LookupState{}, fmt.Errorf("operator: lookup: %.80q is none: use %s or %s", lookup, LookupPublished, LookupType)
	}
	return states[at], nil
}

// define runs one of the statements, outside of a transaction. The function by time is for those alone to whom its
// owner grants it, as all of ours.
func (o *Operator) define(ctx context.Context, lookup Lookup, verb string) error {
	statements := []string{statementOf(o.schema, fmt.Sprintf("lookup_%s_%s", verb, lookup))}
	if lookup == LookupPublished && verb == "add" {
		statements = append(statements, sqltext.In(o.schema,
			"REVOKE EXECUTE ON FUNCTION {schema}.outbox_id_at(timestamptz) FROM PUBLIC"))
	}
	for _, statement := range statements {
		_, err := o.db.Exec(ctx, statement)
		switch {
		case err == nil:
		case sqlstate.PermissionDenied(err):
			return fmt.Errorf("operator: lookup %s: %w; it takes the owner of the tables", lookup, err)
		default:
			return fmt.Errorf("operator: lookup %s: %s: %w; an index that is half built is left: add it again", lookup,
				strings.Fields(statement)[0], err)
		}
	}
	return nil
}
