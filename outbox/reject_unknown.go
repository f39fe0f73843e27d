package outbox

import (
	"fmt"
	"strings"
)

// UnknownTypesConstraint is the constraint that [Registry.RejectUnknownSQL] puts on outbox_events.
const UnknownTypesConstraint = "outbox_events_known_types"

// RejectUnknownSQL returns the SQL that makes the database refuse events whose type is not in the
// registry, or whose aggregate type is not that type's. Run it again after every change of the registry,
// before the first producer of a new type is deployed: from then on a transaction that emits an unknown
// type fails. Rows that are there already are not looked at. PostgreSQL reads and plans a CHECK anew for every
// statement that inserts: it costs every emit a little.
func (r *Registry) RejectUnknownSQL(schema string) string {
	if schema == "" {
		schema = DefaultSchema
	}
	known := make([]string, 0, len(r.contracts))
	for _, eventType := range r.Types() {
		contract, _ := r.Contract(eventType)
		known = append(known, fmt.Sprintf("('%s', '%s')", contract.Type, contract.Aggregate)) // both are checked names
	}
	table := quoteIdent(schema) + ".outbox_events"
	return fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s,\n    ADD CONSTRAINT %s CHECK ((event_type, "+
		"aggregate_type) IN (\n        %s\n    )) NOT VALID;\n",
		table, UnknownTypesConstraint, UnknownTypesConstraint, strings.Join(known, ",\n        "))
}
