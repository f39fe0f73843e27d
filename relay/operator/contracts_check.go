package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// The bounds of a check of a registry.
const (
	// MaxChecked is the most events that one check looks at.
	MaxChecked   = 1_000_000
	usualChecked = 20_000
	// checkedPage is how many events one statement answers: each is looked at as it comes.
	checkedPage = 1_000
	// mostFindings is how many findings have a place of their own, mostExamples how many events each names.
	mostFindings = 100
	mostExamples = 3
)

// A RegistryCheck is how a registry is checked.
type RegistryCheck struct {
	// Limit is how many events are looked at. Defaults to 20,000; at most MaxChecked.
	Limit int
	// NoPayloads looks at types and aggregates alone, as if the role could not read payloads.
	NoPayloads bool
}

// ReasonOtherVersion says that the version in an event's envelope is not that of its contract. It is published all the
// same; consumers decide.
const ReasonOtherVersion = "other_version"

// A RegistryReport is which events that wait a registry cannot publish.
type RegistryReport struct {
	// Looked is how many events were looked at that wait to be published: ready, retrying, parked or waiting.
	Looked int64 `json:"looked"`
	// Complete tells that these are all. Otherwise there are more than the limit, or they stand behind as many that are
	// published.
	Complete bool `json:"complete"`
	// Payloads tells whether the role could read payloads. Otherwise types and aggregates are all that was checked.
	Payloads bool `json:"payloads"`
	// Unpublishable is how many of them the registry cannot publish.
	Unpublishable int64             `json:"unpublishable"`
	Findings      []RegistryFinding `json:"findings"`
	// More is how many events have findings that are not listed, because there are too many kinds of them.
	More int64 `json:"more,omitempty"`
}

// A RegistryFinding is what is wrong with some events of a type.
type RegistryFinding struct {
	Type string `json:"type"`
	// Reason is that of the dead letter that would come of it: unknown_event_type, aggregate_mismatch, invalid_payload or
	// too_large; or other_version, with which events are published.
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	// Publishable tells that they are published all the same.
	Publishable bool             `json:"publishable,omitempty"`
	Events      int64            `json:"events"`
	States      map[string]int64 `json:"states"`
	// Examples are the ids of some of them.
	Examples []outbox.ID `json:"examples"`
}

// CheckRegistry says which of the events that wait a registry cannot publish: a relay with it would park them or make
// them dead. So it is asked before the relay is deployed. It looks at each event as a relay does, at one moment, and
// changes nothing. The grants of the viewer role are enough for types and aggregates; payloads are looked at where the
// role may read them.
func (o *Operator) CheckRegistry(ctx context.Context, registry *outbox.Registry, how RegistryCheck) (
	*RegistryReport, error,
) {
	if how.Limit < 0 || how.Limit > MaxChecked {
		err := fmt.Errorf("the limit is %d, must be between 1 and %d", how.Limit, MaxChecked)
		return nil, fmt.Errorf("operator: registry: %w", notUnderstoodError{err})
	}
	c := &registryChecking{
		registry: registry, left: cmp.Or(how.Limit, usualChecked), byKind: map[[3]string]*RegistryFinding{},
		report: &RegistryReport{Complete: true},
	}
	err := o.look(ctx, "registry", func(l *looking) error {
		var lanes []int16
		var floors []int64
		if _, err := l.Exec(ctx, l.sql("look_in_order")); err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		err := l.QueryRow(ctx, l.sql("contracts_lanes"), l.table("outbox_events")).Scan(&lanes, &floors, &c.report.Payloads)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		c.report.Payloads = c.report.Payloads && !how.NoPayloads
		// Those that are dead wait for a person. Of an event that is held its own row says no more than that.
		held := []state.State{state.Retrying, state.Parked, state.Waiting}
		if err := c.walk(ctx, l, "contracts_held", held, lanes, make([]int64, len(lanes))); err != nil {
			return err
		}
		return c.walk(ctx, l, "contracts_ready", []state.State{state.Ready}, lanes, floors)
	})
	if err != nil {
		return nil, err
	}
	return c.result(), nil
}

// registryChecking is one check on its way.
type registryChecking struct {
	registry *outbox.Registry
	left     int // rows that may still be read
	byKind   map[[3]string]*RegistryFinding
	report   *RegistryReport
}

// waitingRow is an event as a relay would read it. What may be null was not read.
type waitingRow struct {
	lane                     int16
	seq                      int64
	state                    state.State
	id                       string
	stored                   outbox.Stored
	dedupe, headers, content *string
}

// walk goes through lanes from a number on, a part of each at a time, so that a long one does not keep it from the
// others. It looks at those events that are in one of the states.
func (c *registryChecking) walk(ctx context.Context, l *looking, statement string, states []state.State, lanes []int16,
	above []int64,
) error {
	const nothing = "NULL::text AS dedupe_key, NULL::text AS headers, NULL::text AS payload"
	const all = "e.dedupe_key, e.headers::text AS headers, e.payload_json::text AS payload"
	const ofReady = "e.dedupe_key, CASE e.state WHEN 0 THEN e.headers::text END AS headers, " +
		"CASE e.state WHEN 0 THEN e.payload_json::text END AS payload"
	ready, held := nothing, nothing
	if c.report.Payloads {
		ready, held = ofReady, all
	}
	query := l.sql(statement, "{ready}", ready, "{held}", held)
	for len(lanes) > 0 {
		if c.left <= 0 {
			c.report.Complete = false
			return nil
		}
		share := max(1, min(c.left, checkedPage)/len(lanes))
		rows, err := l.Query(ctx, query, lanes, above, share)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		counts, last := map[int16]int{}, map[int16]int64{}
		var row waitingRow
		_, err = pgx.ForEachRow(rows, []any{
			&row.lane, &row.seq, &row.state, &row.id, &row.stored.Namespace, &row.stored.EventType,
			&row.stored.AggregateType, &row.stored.AggregateID, &row.stored.TenantID, &row.dedupe, &row.headers, &row.content,
		}, func() error {
			counts[row.lane]++
			last[row.lane] = max(last[row.lane], row.seq)
			c.left--
			if !slices.Contains(states, row.state) {
				return nil
			}
			return c.look(row)
		})
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		lanes, above = longer(lanes, counts, last, share)
	}
	return nil
}

// longer are the lanes that gave as much as they were asked for, and where they go on.
func longer(lanes []int16, counts map[int16]int, last map[int16]int64, share int) (more []int16, above []int64) {
	for _, lane := range lanes {
		if counts[lane] == share {
			more, above = append(more, lane), append(above, last[lane])
		}
	}
	return more, above
}

// look holds one event to the registry.
func (c *registryChecking) look(row waitingRow) error {
	var err error
	if row.stored.ID, err = outbox.ParseID(row.id); err != nil {
		return err
	}
	c.report.Looked++
	reason, detail := c.problem(row)
	if reason == "" {
		return nil
	}
	if reason != ReasonOtherVersion {
		c.report.Unpublishable++
	}
	kind := [3]string{row.stored.EventType, reason, detail}
	finding := c.byKind[kind]
	if finding == nil {
		if len(c.byKind) == mostFindings {
			c.report.More++
			return nil
		}
		finding = &RegistryFinding{
			Type: kind[0], Reason: reason, Detail: detail, Publishable: reason == ReasonOtherVersion, States: map[string]int64{},
		}
		c.byKind[kind] = finding
	}
	finding.Events++
	finding.States[row.state.String()]++
	if len(finding.Examples) < mostExamples {
		finding.Examples = append(finding.Examples, row.stored.ID)
	}
	return nil
}

// problem is what a relay with the registry would say about an event; empty: nothing.
func (c *registryChecking) problem(row waitingRow) (reason, detail string) {
	contract, known := c.registry.Contract(row.stored.EventType)
	switch {
	case !known:
		return string(outbox.UnknownEventType), "the registry has no such type"
	case row.stored.AggregateType != contract.Aggregate:
		return string(outbox.AggregateMismatch), "the contract is for aggregate type " + contract.Aggregate
	case row.content == nil:
		return "", ""
	case len(*row.content) > outbox.MaxContractBytes:
		return publish.ReasonTooLarge, fmt.Sprintf("the payload has more than %d bytes", outbox.MaxContractBytes)
	}
	row.stored.Payload = []byte(*row.content)
	if row.dedupe != nil {
		row.stored.DedupeKey = *row.dedupe
	}
	if err := c.check(row.stored); err != nil {
		if broken := (*outbox.ContractError)(nil); errors.As(err, &broken) {
			return string(broken.Reason), clean.Line(broken.Detail)
		}
		return string(outbox.InvalidPayload), clean.Error(err)
	}
	if problem := row.stored.Problem(); problem != "" {
		return string(outbox.InvalidPayload), problem
	}
	var headers map[string]string
	if row.headers != nil && !core.ReadHeaders([]byte(*row.headers), &headers) {
		return string(outbox.InvalidPayload), "headers: not an object of texts"
	}
	if envelope, err := outbox.DecodeEnvelope(row.stored.Payload); err == nil && envelope.Version != contract.Version {
		return ReasonOtherVersion, fmt.Sprintf("version %d, and the contract is of version %d", envelope.Version,
			contract.Version)
	}
	return "", ""
}

// check survives a contract's check that panics, as a relay does.
func (c *registryChecking) check(stored outbox.Stored) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &outbox.ContractError{Reason: outbox.InvalidPayload, Detail: "the contract's check panicked"}
		}
	}()
	_, err = c.registry.Check(stored)
	return err
}

// result is the report, what cannot be published first, and of that what is most.
func (c *registryChecking) result() *RegistryReport {
	c.report.Findings = []RegistryFinding{}
	for _, finding := range c.byKind {
		c.report.Findings = append(c.report.Findings, *finding)
	}
	slices.SortFunc(c.report.Findings, func(a, b RegistryFinding) int {
		if a.Publishable != b.Publishable {
			return map[bool]int{false: -1, true: 1}[a.Publishable]
		}
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Detail, b.Detail))
	})
	return c.report
}
