package corpus

import (
	"fmt"
	"slices"
	"strings"
)

// identifierInputs put every attack into every field that holds an identifier. A name has a closed
// alphabet, so the attacks bounce off it; a value may be any text without control characters, and must
// come back as it went in.
func identifierInputs() []Input {
	var inputs []Input
	for _, attack := range []struct{ what, text string }{
		{"SQL", "'; DROP TABLE outbox_events; --"},
		{"SQL comment", "x' OR 1=1 /*"},
		{"dollar quote", "$$; SELECT pg_sleep(9); $$"},
		{"parameter", "$1 :name ? @p1"},
		{"array literal", `{"a",NULL},{`},
		{"backslashes and quotes", `\" \\" \`},
		{"HTML", `<script>alert("x")</script>&lt;`},
		{"shell", "$(reboot) `reboot` | & ; > /dev/null"},
		{"LDAP", "*)(uid=*))(|(uid=*"},
		{"log4j", "${jndi:ldap://127.0.0.1/x}"},
		{"template", "{{7*7}} {%25 raw %}"},
		{"path", "../../../etc/passwd"},
		{"format string", "%s%n%x%!d(MISSING)"},
		{"only spaces", "   "},
		{"CRLF", "x\r\nX-Admin: true"},
		{"forged log line", "x\n2026-01-01T00:00:00Z level=ERROR msg=breach"},
		{"ANSI", "\x1b[2J\x1b[31m"},
		{"backspace", "admin\b\b\b\b\broot"},
	} {
		hostile := attack.text + Canary
		control := strings.ContainsAny(attack.text, "\r\n\x1b\b")
		for _, field := range []struct {
			what, field string
			name        bool
			set         func(string) func(*Given)
		}{
			{"event type", "contract", true, eventType},
			{"aggregate type", "contract", true, aggregateType},
			{"namespace", "contract", true, namespace},
			{"header name", "headers", true, func(text string) func(*Given) { return header(text, "v") }},
			{"aggregate id", "aggregate_id", false, aggregateID},
			{"tenant id", "tenant_id", false, tenantID},
			{"dedupe key", "dedupe_key", false, dedupeKey},
			{"header value", "headers", false, func(text string) func(*Given) { return header("h", text) }},
			{"actor id", "actor", false, func(text string) func(*Given) { return actor("user", text, "") }},
		} {
			name := attack.what + " in the " + field.what
			if field.name || control {
				inputs = append(inputs, rejected(name, field.field, field.set(hostile)))
			} else {
				inputs = append(inputs, stored(name, field.set(hostile)))
			}
		}
	}
	return inGroup("identifiers", slices.Concat(inputs, nameInputs(), tenantInputs(), controlInputs())...)
}

// controlInputs are the first and the last of the control characters, and their neighbours, in every field that holds a
// value.
func controlInputs() []Input {
	var inputs []Input
	for _, field := range []struct {
		what, field string
		set         func(string) func(*Given)
	}{
		{"aggregate id", "aggregate_id", aggregateID},
		{"tenant id", "tenant_id", tenantID},
		{"dedupe key", "dedupe_key", dedupeKey},
		{"header value", "headers", func(text string) func(*Given) { return header("h", text) }},
		{"actor name", "actor", func(text string) func(*Given) { return actor("user", "1", text) }},
	} {
		for _, c := range []rune{0x01, 0x1e, 0x1f, 0x7f, 0x80, 0x9f} {
			inputs = append(inputs, rejected(fmt.Sprintf("%U in the %s", c, field.what), field.field,
				field.set(Canary+string(c))))
		}
		for _, c := range []rune{0x20, 0x7e, 0xa0} {
			inputs = append(inputs, stored(fmt.Sprintf("%U in the %s", c, field.what), field.set(Canary+string(c))))
		}
	}
	return inputs
}

// nameInputs are at the edge of what a name may be.
func nameInputs() []Input {
	return []Input{
		stored("names with everything allowed", both(eventType("0.aZ_-."), aggregateType("a..b--c__"), namespace("9"))),
		rejected("type that begins with a point", "contract", eventType(".x")),
		rejected("type that begins with a hyphen", "contract", eventType("-rf")),
		rejected("type with a space", "contract", eventType("order created")),
		rejected("type with a slash", "contract", eventType("order/created")),
		rejected("type with a line break at the end", "contract", eventType("order_created\n")),
		rejected("type with a Cyrillic letter", "contract", eventType("оrder_created")),
		rejected("namespace with a colon", "contract", namespace("a:b")),
		stored("words that SQL reserves", both(eventType("NULL"), aggregateType("SELECT"), namespace("null"),
			aggregateID("NULL"), header("NULL", "NULL"))),
		stored("words that SQL reserves, with a key", both(dedupeKey("NULL"), aggregateID("null"), tenantless)),
	}
}

func tenantless(g *Given) { g.Tenant = "" }

// tenantInputs are about whose key it is.
func tenantInputs() []Input {
	const hyphens, bare = "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6ba7b8109dad41d180b400c04fd430c8"
	mine := func(tenant, key string) func(*Given) { return both(tenantID(tenant), dedupeKey(key)) }
	return []Input{
		stored("key of the tenant", mine("acme", "acme/1")),
		stored("key of the tenant and nothing else", mine("acme", "acme/")),
		rejected("key without the tenant", "dedupe_key", mine("acme", Canary)),
		rejected("key of another tenant", "dedupe_key", mine("acme", "other/"+Canary)),
		rejected("key of a tenant with a longer name", "dedupe_key", mine("acme", "acme2/"+Canary)),
		rejected("key of a tenant with a shorter name", "dedupe_key", mine("acme2", "acme/"+Canary)),
		rejected("key of the tenant in capitals", "dedupe_key", mine("acme", "ACME/"+Canary)),
		rejected("key with the tenant behind a slash", "dedupe_key", mine("acme", "/acme/"+Canary)),
		rejected("key with a space before the tenant", "dedupe_key", mine("acme", " acme/"+Canary)),
		rejected("key that is the tenant without a slash", "dedupe_key", mine("acme", "acme")),
		stored("key of a tenant with a slash in its name", mine("a/b", "a/b/1")),
		rejected("key of half a tenant", "dedupe_key", mine("a/b", "a/"+Canary)),
		stored("key of a UUID", mine(hyphens, hyphens+"/1")),
		stored("key of a UUID without its hyphens", mine(hyphens, bare+"/2")),
		stored("key of a bare UUID with hyphens", mine(bare, hyphens+"/3")),
		stored("key of a UUID in capitals", mine(hyphens, strings.ToUpper(hyphens)+"/4")),
		rejected("key of a UUID without a slash", "dedupe_key", mine(hyphens, bare)),
		rejected("key of another UUID", "dedupe_key", mine(hyphens, strings.Replace(bare, "6", "7", 1)+"/"+Canary)),
		rejected("tenant of 32 letters that is no UUID",
			"dedupe_key", mine(strings.Repeat("z", 32), strings.Repeat("Z", 32)+"/"+Canary)),
		rejected("tenant with a percent sign", "dedupe_key", mine("%", "anything/"+Canary)),
		rejected("tenant with an underscore", "dedupe_key", mine("a_b", "axb/"+Canary)),
		stored("key that names a tenant while there is none", dedupeKey("acme/1")),
	}
}
