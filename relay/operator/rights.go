package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/schema"
)

// Parts are what a database role can be to the outbox.
var Parts = []string{"producer", "relay", "janitor", "viewer", "operator", "reader"}

// A Right is one cell of the matrix of roles.
type Right struct {
	// Privilege is what may be done: SELECT, INSERT, UPDATE, DELETE, EXECUTE, USAGE, and whatever else was granted.
	Privilege string `json:"privilege"`
	// Kind and Object are on what: a table (or view), sequence, function, or the schema.
	Kind   string `json:"kind"`
	Object string `json:"object"`
	// Column is which; empty: all of it.
	Column string `json:"column,omitempty"`
}

// The kinds of objects.
const (
	kindTable    = "table"
	kindSequence = "sequence"
	kindFunction = "function"
	kindSchema   = "schema"
)

// String says it in words: "SELECT (payload_json) on outbox_events".
func (r Right) String() string {
	if r.Column != "" {
		return fmt.Sprintf("%s (%s) on %s", r.Privilege, r.Column, r.Object)
	}
	if r.Kind == kindSchema {
		return r.Privilege + " on the schema"
	}
	return r.Privilege + " on " + r.Object
}

// RightsOf are the rights of a part, as outbox_grant of the newest migration gives them: there is no other list.
func RightsOf(part string) ([]Right, error) {
	text, err := grantFunction()
	if err != nil {
		return nil, err
	}
	_, text, found := strings.Cut(text, "WHEN '"+part+"' THEN")
	if !found || !slices.Contains(Parts, part) {
		return nil, fmt.Errorf("operator: there is no part %.80q: use %s", part, strings.Join(Parts, ", "))
	}
	text, _, _ = strings.Cut(text, "];")
	_, text, found = strings.Cut(text, "ARRAY[")
	if !found {
		return nil, fmt.Errorf("operator: outbox_grant has no list for %s", part)
	}
	rights := []Right{{Privilege: "USAGE", Kind: kindSchema}}
	if part == "operator" {
		if rights, err = RightsOf("viewer"); err != nil {
			return nil, err
		}
	}
	for _, item := range literals(text) {
		some, err := parseGrant(item)
		if err != nil {
			return nil, err
		}
		rights = append(rights, some...)
	}
	return rights, nil
}

// grantFunction is the text of outbox_grant in the newest migration that makes it.
func grantFunction() (text string, err error) {
	migrations, err := schema.Outbox.Migrations()
	if err != nil {
		return "", fmt.Errorf("operator: %w", err)
	}
	for _, migration := range migrations {
		if at := strings.LastIndex(migration.Up, "FUNCTION outbox_grant(role text"); at >= 0 {
			text, _, _ = strings.Cut(migration.Up[at:], "\n$$;")
		}
	}
	if text == "" {
		return "", errors.New("operator: no migration makes outbox_grant")
	}
	return text, nil
}

// literals are the elements of an array of texts. Those with nothing but space between them are one.
func literals(array string) (found []string) {
	var item strings.Builder
	inside, begun := false, false
	end := func() {
		if begun {
			found = append(found, item.String())
		}
		item.Reset()
		begun = false
	}
	for line := range strings.Lines(array) {
		if !inside {
			line, _, _ = strings.Cut(line, "--")
		}
		for _, r := range line {
			switch {
			case r == '\'':
				inside, begun = !inside, true
			case inside:
				item.WriteRune(r)
			case r == ',':
				end()
			}
		}
	}
	end()
	return found
}

// parseGrant reads what stands between GRANT and TO.
func parseGrant(item string) (rights []Right, err error) {
	privileges, objects, found := strings.Cut(item, " ON ")
	if !found {
		return nil, fmt.Errorf("operator: %.80q is no grant", item)
	}
	kind := kindTable
	for prefix, other := range map[string]string{"SEQUENCE ": kindSequence, "FUNCTION ": kindFunction} {
		if rest, is := strings.CutPrefix(objects, prefix); is {
			kind, objects = other, rest
		}
	}
	for _, object := range split(objects) {
		for _, privilege := range split(privileges) {
			word, columns, _ := strings.Cut(privilege, "(")
			names := split(strings.TrimSuffix(strings.TrimSpace(columns), ")"))
			if len(names) == 0 {
				names = []string{""}
			}
			for _, column := range names {
				rights = append(rights, Right{strings.TrimSpace(word), kind, object, column})
			}
		}
	}
	return rights, nil
}

// split takes a list at the commas that are outside of parentheses.
func split(list string) (parts []string) {
	depth := 0
	for _, part := range strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	}) {
		if part = strings.TrimFunc(part, unicode.IsSpace); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// on is the object as REVOKE names it.
func (r Right) on(schemaName string) string {
	switch r.Kind {
	case kindSchema:
		return "SCHEMA " + pgx.Identifier{schemaName}.Sanitize()
	default:
		return strings.ToUpper(r.Kind) + " " + pgx.Identifier{schemaName, r.Object}.Sanitize()
	}
}
