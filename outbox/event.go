package outbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An Event is something that happened to an aggregate, about to be written. Make one with
// [ContractFor.New] and set what else applies before [Emit].
type Event struct {
	// ID is the event's id, a UUIDv7. Defaults to a new one. Consumers take two events with one id for the same, and the
	// database does not refuse the second: what may be emitted twice needs a DedupeKey.
	ID ID
	// AggregateID names the aggregate within its type.
	AggregateID string
	// TenantID says whose event it is, where there are tenants. Defaults to none.
	TenantID string
	// DedupeKey makes a second emit of the same event a no-op, within namespace, event type and tenant.
	// With a tenant it must begin with the tenant id and '/'. Defaults to none.
	DedupeKey string
	// OccurredAt is data for consumers; nothing is ordered by it. Defaults to the time of the emit.
	OccurredAt time.Time
	// Actor is who caused the event. Defaults to nobody.
	Actor *Actor
	// Headers travel as attributes of the message. Defaults to none.
	Headers map[string]string

	contract Contract
	data     json.RawMessage
	problem  string // what is wrong with data
}

// Contract returns the contract that the event was made by.
func (e *Event) Contract() Contract { return e.contract }

// reservedHeaders are the attributes that the relay sets itself.
var reservedHeaders = []string{
	"event_id", "event_type", "namespace", "aggregate_type", "aggregate_id", "created_at", "tenant_id", "dedupe_key",
	"outbox_seq",
}

// brokerHeaders mean something to a broker: RabbitMQ routes by CC and BCC, and closes the channel when
// they are not lists.
var brokerHeaders = []string{"cc", "bcc"}

// reservedPrefixes are names that brokers keep for themselves, in lower case.
var reservedPrefixes = []string{"goog", "nats-", "x-posthaste-"}

// problems lists everything that is wrong with the event, as pairs of field and problem.
func (e *Event) problems() [][2]string {
	if e.contract.Type == "" && e.data == nil && e.problem == "" {
		return [][2]string{{"event", "it was not made by a contract: use Define and New"}}
	}
	var found [][2]string
	add := func(field, problem string) {
		if problem != "" {
			found = append(found, [2]string{field, problem})
		}
	}
	for _, problem := range e.contract.problems() {
		add("contract", problem)
	}
	if e.ID != (ID{}) && !e.ID.isVersion7() {
		add("id", "not a UUIDv7")
	}
	if e.AggregateID == "" {
		add("aggregate_id", "missing")
	}
	add("aggregate_id", checkText(e.AggregateID, MaxAggregateIDBytes))
	if e.contract.RequireTenant && e.TenantID == "" {
		add("tenant_id", "missing, and the contract requires it")
	}
	add("tenant_id", checkText(e.TenantID, MaxTenantIDBytes))
	add("dedupe_key", checkText(e.DedupeKey, MaxDedupeKeyBytes))
	add("dedupe_key", checkKeyOfTenant(e.TenantID, e.DedupeKey))
	if year := e.OccurredAt.UTC().Year(); year < 1 || year > 9999 {
		add("occurred_at", "the year is not between 1 and 9999")
	}
	add("actor", checkActor(e.Actor))
	add("headers", checkHeaders(e.Headers))
	add("data", e.problem)
	return found
}

// checkKeyOfTenant holds a dedupe key to its tenant. A tenant that is a UUID may stand in the key with
// or without hyphens.
func checkKeyOfTenant(tenant, key string) string {
	if tenant == "" || key == "" {
		return ""
	}
	owner, _, found := strings.Cut(key, "/")
	if strings.HasPrefix(key, tenant+"/") || found && isHexUUID(tenant) && bareUUID(owner) == bareUUID(tenant) {
		return ""
	}
	return "must begin with the tenant id and '/'"
}

func bareUUID(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }

func isHexUUID(s string) bool {
	bare := bareUUID(s)
	return len(bare) == 32 && strings.Trim(bare, "0123456789abcdef") == ""
}

func checkActor(actor *Actor) string {
	if actor == nil {
		return ""
	}
	if actor.Type == "" || actor.ID == "" {
		return "type and id are required"
	}
	for _, text := range []string{actor.Type, actor.ID, actor.Name} {
		if problem := checkText(text, MaxActorBytes); problem != "" {
			return problem
		}
	}
	return ""
}

func checkHeaders(headers map[string]string) string {
	if len(headers) > MaxHeaders {
		return fmt.Sprintf("%d of them, the limit is %d", len(headers), MaxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if problem := checkName(name); problem != "" {
			return "a name: " + problem
		}
		lower := strings.ToLower(name)
		if isReserved(lower) {
			return fmt.Sprintf("the name %s is reserved", name)
		}
		if problem := checkText(headers[name], MaxHeaderValueBytes); problem != "" {
			return fmt.Sprintf("%s: %s", name, problem)
		}
	}
	return ""
}

func isReserved(lower string) bool {
	return slices.Contains(reservedHeaders, lower) || slices.Contains(brokerHeaders, lower) ||
		slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(lower, prefix) })
}
