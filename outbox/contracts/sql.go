package contracts

import (
	"encoding/json"
	"fmt"
	"strings"
)

// SQL is how producers of any language emit these types: for each a call of outbox_emit that runs as it is, with data
// made of its schema ([Contract.Example]). schema is where the outbox is. check says what is wrong with data of a type,
// so that a call that would be rejected by a relay says so; nil: nobody knows.
func (d Document) SQL(schema string, check func(eventType string, data json.RawMessage) error) string {
	var text strings.Builder
	text.WriteString(`-- Emit in the transaction of the change that the event tells of. By name may follow: tenant_id,
-- dedupe_key, actor, headers, occurred_at, event_id. docs/guide/languages.md has their limits, and the same call in
-- other languages.
`)
	for _, contract := range d.Contracts {
		data := contract.Example()
		fmt.Fprintf(&text, "\n-- %s, about %s, to topic %s\n", contract.Type, contract.Aggregate, oneLine(contract.Topic))
		if len(contract.Schema) == 0 {
			text.WriteString("-- It has no schema: any object will do.\n")
		}
		if check != nil {
			if err := check(contract.Type, data); err != nil {
				fmt.Fprintf(&text, "-- This data does not keep the schema yet: %s\n", oneLine(err.Error()))
			}
		}
		fmt.Fprintf(&text, "SELECT id, created FROM %s.outbox_emit(%s, %s, %s,\n  %s::json, version => %d);\n",
			identifier(schema), literal(contract.Type), literal(contract.Aggregate), literal(contract.Aggregate+"-1"),
			literal(string(data)), contract.Version)
	}
	return text.String()
}

// oneLine keeps a text within its comment.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// identifier and literal are text as SQL takes it, whatever standard_conforming_strings says.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
