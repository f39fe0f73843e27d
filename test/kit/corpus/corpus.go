// Package corpus holds hostile inputs of emit, by name: what every one is, and whether it must be refused.
// proof-emit holds the emit side to it; proof-hostile sends what is stored on to brokers.
package corpus

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Canary stands in every hostile value that can hold it: no error may repeat it.
const Canary = "c4n4ry"

// An Input is one hostile call of emit.
type Input struct {
	Name  string
	Group string
	// Events builds the call, when it is its turn: some are large.
	Events func() []Given
	// Rejected is the field that the refusal must name; empty when the input must be stored.
	Rejected string
	// Says is what else the refusal must say: sizes and limits.
	Says []string
	// OnlyGo is why outbox_emit cannot be asked, SQLDiffers why it may answer otherwise.
	OnlyGo     string
	SQLDiffers string
}

// Groups are the groups of the fault model's list of hostile inputs that concern emit.
var Groups = []string{"bytes", "utf8", "json", "envelope", "identifiers", "broker", "time"}

// All is the whole corpus.
func All() []Input { return all() }

var all = sync.OnceValue(func() []Input {
	return slices.Concat(bytesInputs(), utf8Inputs(), jsonInputs(), envelopeInputs(), identifierInputs(), brokerInputs(),
		timeInputs())
})

// stored is an input of one event that must be stored as it is.
func stored(name string, change func(*Given)) Input { return rejected(name, "", change) }

// rejected is an input of one event whose refusal must name this field.
func rejected(name, field string, change func(*Given), says ...string) Input {
	return Input{Name: name, Rejected: field, Says: says, Events: func() []Given {
		event := OrderCreated("{}")
		change(&event)
		return []Given{event}
	}}
}

// call is an input of any number of events.
func call(name, field string, build func() []Given, says ...string) Input {
	return Input{Name: name, Rejected: field, Says: says, Events: build, OnlyGo: "outbox_emit takes one event"}
}

func (i Input) goOnly(why string) Input {
	i.OnlyGo = why
	return i
}

func (i Input) sqlMay(why string) Input {
	i.SQLDiffers = why
	return i
}

func inGroup(group string, inputs ...Input) []Input {
	for i := range inputs {
		inputs[i].Group = group
		inputs[i].Name = group + "/" + inputs[i].Name
	}
	return inputs
}

// raw sets the data.
func raw(data string) func(*Given) {
	return func(g *Given) { g.Payload = json.RawMessage(data) }
}

// typed sets a payload that the library has to encode.
func typed(payload any) func(*Given) {
	return func(g *Given) { g.Payload = payload }
}

func aggregateID(text string) func(*Given) { return func(g *Given) { g.AggregateID = text } }
func tenantID(text string) func(*Given)    { return func(g *Given) { g.Tenant = text } }
func dedupeKey(text string) func(*Given)   { return func(g *Given) { g.Key = text } }

func header(name, value string) func(*Given) {
	return func(g *Given) { g.Headers = map[string]string{name: value} }
}

func both(changes ...func(*Given)) func(*Given) {
	return func(g *Given) {
		for _, change := range changes {
			change(g)
		}
	}
}

// StoredSize makes the stored payload exactly this long.
func StoredSize(size int) func(*Given) {
	return func(g *Given) {
		const id = "00000000-0000-7000-8000-000000000000"
		g.Payload = json.RawMessage(`{"pad":""}`)
		pad := size - len(g.Envelope(id))
		g.Payload = json.RawMessage(`{"pad":"` + Canary + strings.Repeat("x", pad-len(Canary)) + `"}`)
	}
}
