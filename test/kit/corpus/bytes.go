package corpus

import (
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

const (
	ownLimit   = "outbox_emit knows the default limit only"
	noContract = "there are no contracts in SQL"
)

// bytesInputs are about size: everything that has a limit, at the limit and one beyond.
func bytesInputs() []Input {
	inputs := []Input{
		rejected("payload empty", "data", raw("")),
		rejected("payload one byte", "data", raw("7")),
		rejected("payload one bracket", "data", raw("{")),
		stored("payload two bytes", raw("{}")),
		rejected("payload 10 MiB", "data", StoredSize(10<<20), "10485760", "1048576"),
		rejected("payload 32 MiB", "data", StoredSize(32<<20), "33554432"),
		stored("payload 9 MiB where the contract allows it",
			both(maxBytes(outbox.MaxContractBytes), StoredSize(9<<20))).goOnly(ownLimit),
		rejected("payload 9 MiB and a byte", "data", both(maxBytes(outbox.MaxContractBytes), StoredSize(9<<20+1)), "9437185",
			"9437184").goOnly(ownLimit),
		stored("payload at a small limit", both(maxBytes(300), StoredSize(300))).goOnly(ownLimit),
		rejected("payload beyond a small limit", "data", both(maxBytes(300), StoredSize(301)), "301", "300").goOnly(ownLimit),
		rejected("contract that allows 9 MiB and a byte", "contract", maxBytes(9<<20+1), "9437185",
			"9437184").goOnly(noContract),
		rejected("contract that allows less than nothing", "contract", maxBytes(-1)).goOnly(noContract),
		stored("payload of spaces", raw(strings.Repeat(" ", 1<<19)+"{}"+strings.Repeat("\n", 1<<18))),
		stored("aggregate id of 128 emoji", aggregateID(strings.Repeat("🐎", 128))),
		rejected("aggregate id of 128 emoji and a letter", "aggregate_id", aggregateID(strings.Repeat("🐎", 128)+"x"),
			"513", "512"),
		stored("headers at every limit", fullHeaders("x")),
		stored("headers at every limit that double when quoted", fullHeaders(`"`)),
		stored("headers at every limit that HTML would escape", fullHeaders("<")),
		stored("headers at every limit that JavaScript would escape", fullHeaders("\u2028")),
		rejected("headers one too many", "headers", headers(outbox.MaxHeaders+1, 8, "x"), "65", "64"),
		call("no event at all", "events", func() []Given { return nil }),
		call("as many events as one call may have", "", func() []Given {
			return repeat(OrderCreated("{}"), outbox.MaxEventsPerEmit)
		}),
		call("one event more than a call may have", "events", func() []Given {
			return repeat(OrderCreated("{}"), outbox.MaxEventsPerEmit+1)
		}, "10001", "10000"),
		call("16 MiB together", "", func() []Given { return sixteen(1 << 20) }),
		call("16 MiB and a byte together", "events", func() []Given {
			return append(sixteen(1<<20-1000), large(16001))
		}, "16777217", "16777216"),
	}
	return inGroup("bytes", append(inputs, limits()...)...)
}

// limits has three inputs for each field: a byte below its limit, at it and beyond it.
func limits() []Input {
	var inputs []Input
	for _, limit := range []struct {
		what  string
		field string
		bytes int
		set   func(text string) func(*Given)
	}{
		{"payload", "data", outbox.MaxPayloadBytes, func(text string) func(*Given) { return StoredSize(len(text)) }},
		{"aggregate id", "aggregate_id", outbox.MaxAggregateIDBytes, aggregateID},
		{"tenant id", "tenant_id", outbox.MaxTenantIDBytes, tenantID},
		{"dedupe key", "dedupe_key", outbox.MaxDedupeKeyBytes, dedupeKey},
		{"event type", "contract", outbox.MaxNameBytes, eventType},
		{"aggregate type", "contract", outbox.MaxNameBytes, aggregateType},
		{"namespace", "contract", outbox.MaxNameBytes, namespace},
		{"header name", "headers", outbox.MaxHeaderNameBytes, func(text string) func(*Given) { return header(text, "v") }},
		{"header value", "headers", outbox.MaxHeaderValueBytes, func(text string) func(*Given) { return header("h", text) }},
		{"actor type", "actor", outbox.MaxActorBytes, func(text string) func(*Given) { return actor(text, "1", "") }},
		{"actor id", "actor", outbox.MaxActorBytes, func(text string) func(*Given) { return actor("user", text, "") }},
		{"actor name", "actor", outbox.MaxActorBytes, func(text string) func(*Given) { return actor("user", "1", text) }},
	} {
		text := func(n int) string { return Canary + strings.Repeat("x", n-len(Canary)) }
		inputs = append(inputs,
			stored(limit.what+" a byte below its limit", func(g *Given) { limit.set(text(limit.bytes - 1))(g) }),
			stored(limit.what+" at its limit", func(g *Given) { limit.set(text(limit.bytes))(g) }),
			rejected(limit.what+" a byte beyond its limit", limit.field, func(g *Given) { limit.set(text(limit.bytes + 1))(g) },
				fmt.Sprint(limit.bytes+1), fmt.Sprint(limit.bytes)),
		)
	}
	return inputs
}

func maxBytes(n int) func(*Given) { return func(g *Given) { g.Contract.MaxBytes = n } }

func eventType(text string) func(*Given)     { return func(g *Given) { g.Contract.Type = text } }
func aggregateType(text string) func(*Given) { return func(g *Given) { g.Contract.Aggregate = text } }

func namespace(text string) func(*Given) { return func(g *Given) { g.Contract.Namespace = text } }

func actor(kind, id, name string) func(*Given) {
	return func(g *Given) { g.Actor = &outbox.Actor{Type: kind, ID: id, Name: name} }
}

// headers are n headers whose values have this many bytes.
func headers(n, size int, unit string) func(*Given) {
	return func(g *Given) {
		g.Headers = map[string]string{}
		for i := range n {
			name := fmt.Sprintf("h%03d", i)
			value := strings.Repeat(unit, size/len(unit))
			g.Headers[name] = value + strings.Repeat("x", size-len(value))
		}
	}
}

// fullHeaders are as many and as large as headers may be.
func fullHeaders(unit string) func(*Given) {
	return func(g *Given) {
		headers(outbox.MaxHeaders, outbox.MaxHeaderValueBytes, unit)(g)
		long := map[string]string{}
		for name, value := range g.Headers {
			long[name+strings.Repeat("n", outbox.MaxHeaderNameBytes-len(name))] = value
		}
		g.Headers = long
	}
}

func repeat(event Given, n int) []Given {
	same := make([]Given, n)
	for i := range same {
		same[i] = event
	}
	return same
}

func large(size int) Given {
	event := OrderCreated("{}")
	StoredSize(size)(&event)
	return event
}

func sixteen(size int) []Given { return repeat(large(size), 16) }
