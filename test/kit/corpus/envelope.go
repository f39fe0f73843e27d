package corpus

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/posthaste-dev/posthaste/outbox"
)

// parsed is for ids that are written down.
func parsed(text string) outbox.ID {
	id, err := outbox.ParseID(text)
	if err != nil {
		panic(err)
	}
	return id
}

func withID(text string) func(*Given) { return func(g *Given) { g.ID = parsed(text) } }

func version(n int) func(*Given) { return func(g *Given) { g.Contract.Version = n } }

// envelopeInputs are about what the library writes around the data, and about data that pretends to be it.
func envelopeInputs() []Input {
	inputs := []Input{
		stored("data that is an envelope", raw(`{"version":9,"eventId":"x","occurredAt":"never","actor":null,"data":null}`)),
		stored("data with eventId null", raw(`{"eventId":null}`)),
		stored("data with the envelope's names in capitals", raw(`{"VERSION":1,"EVENTID":"x","DATA":{}}`)),
		stored("data that is empty", raw(`{}`)),
		rejected("data that closes the envelope", "data", raw(`{}},"eventId":"x"`)),
		rejected("data that closes the envelope and opens another", "data", raw(`{}} {"data":{}`)),
		stored("string that closes the envelope", raw(`{"a":"},\"eventId\":\"x\",\"data\":{}"}`)),
		rejected("id of version 4", "id", withID("2f7c1d2e-4b5a-4c6d-8e9f-0a1b2c3d4e5f")),
		rejected("id of version 1", "id", withID("2f7c1d2e-4b5a-1c6d-8e9f-0a1b2c3d4e5f")),
		rejected("id of version 8", "id", withID("2f7c1d2e-4b5a-8c6d-8e9f-0a1b2c3d4e5f")),
		rejected("id of ones", "id", withID("ffffffff-ffff-ffff-ffff-ffffffffffff")),
		rejected("id of version 7 and the wrong variant", "id", withID("01980a3c-0000-7000-0000-000000000001")),
		rejected("id of version 7 and Microsoft's variant", "id", withID("01980a3c-0000-7000-c000-000000000001")),
		stored("id of version 7 from the year 10889", withID("ffffffff-ffff-7fff-bfff-ffffffffffff")),
		stored("id of version 7 from 1970", withID("00000000-0000-7000-8000-000000000001")),
		stored("id of zero, which means a new one", func(g *Given) { g.ID = outbox.ID{} }),
		call("same id twice in one call", "id", func() []Given {
			event := OrderCreated("{}")
			withID("01980a3c-0000-7000-8000-00000000000a")(&event)
			return repeat(event, 2)
		}),
		call("same key twice in one call with other data", "dedupe_key", func() []Given {
			return []Given{OrderCreated(`{"a":1}`).WithKey("twice"), OrderCreated(`{"a":2}`).WithKey("twice")}
		}),
		call("one bad event among good ones", "aggregate_id", func() []Given {
			bad := OrderCreated("{}")
			bad.AggregateID = ""
			return []Given{OrderCreated("{}"), bad, OrderCreated("{}")}
		}),
		rejected("version -1", "contract", version(-1)),
		rejected("smallest version", "contract", version(math.MinInt32)),
		stored("version 0, which means 1", version(0)),
		stored("version 2^31-1", version(math.MaxInt32)),
		rejected("version 2^31", "contract", version(math.MaxInt32+1)),
		rejected("largest version", "contract", version(math.MaxInt64)),
		rejected("actor without type", "actor", actor("", Canary, "")),
		rejected("actor without id", "actor", actor(Canary, "", "")),
		rejected("actor of nothing", "actor", actor("", "", "")),
		stored("actor without name", actor("user", "1", "")),
		stored("actor whose name closes the envelope", actor("user", "1", `"},"data":{}}`)),
		stored("actor of HTML", actor("<b>", "&amp;", "</script>")),
		rejected("actor with a line break", "actor", actor("user", "1", Canary+"\nroot")),
		rejected("actor with a NUL", "actor", actor("user", Canary+"\x00", "")),
		rejected("event that no contract made", "event", func(g *Given) { g.Unmade = true }).goOnly(goValue),
		rejected("contract without type", "contract", eventType("")),
		rejected("contract without aggregate", "contract", aggregateType("")),
		rejected("contract without topic", "contract", func(g *Given) { g.Contract.Topic = "" }).goOnly(noContract),
		rejected("contract of nothing", "contract", func(g *Given) { g.Contract = outbox.Contract{} }),
		rejected("contract whose validation fails", "data", func(g *Given) {
			g.Contract.Validate = func(json.RawMessage) error { return errors.New("too late") }
		}, "too late").goOnly(noContract),
		rejected("tenant missing where it is required", "tenant_id", func(g *Given) {
			g.Contract.RequireTenant = true
		}).goOnly(noContract),
		rejected("aggregate id missing", "aggregate_id", aggregateID("")),
	}
	return inGroup("envelope", inputs...)
}
