package emit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// canary stands in every hostile value that can hold it: no error may repeat it.
const canary = "c4n4ry"

// An input is one hostile call of emit.
type input struct {
	name  string
	group string
	// events builds the call, when it is its turn: some are large.
	events func() []given
	// refused is the field that the refusal must name; empty when the input must be stored.
	refused string
	// says is what else the refusal must say: sizes and limits.
	says []string
	// onlyGo is why outbox_emit cannot be asked, sqlDiffers why it may answer otherwise.
	onlyGo     string
	sqlDiffers string
}

// groups are the groups of the fault model's list of hostile inputs that concern emit.
var groups = []string{"bytes", "utf8", "json", "envelope", "identifiers", "broker", "time"}

var corpus = sync.OnceValue(func() []input {
	return slices.Concat(bytesInputs(), utf8Inputs(), jsonInputs(), envelopeInputs(), identifierInputs(), brokerInputs(), timeInputs())
})

// stored is an input of one event that must be stored as it is.
func stored(name string, change func(*given)) input { return refused(name, "", change) }

// refused is an input of one event whose refusal must name this field.
func refused(name, field string, change func(*given), says ...string) input {
	return input{name: name, refused: field, says: says, events: func() []given {
		event := orderCreated("{}")
		change(&event)
		return []given{event}
	}}
}

// call is an input of any number of events.
func call(name, field string, build func() []given, says ...string) input {
	return input{name: name, refused: field, says: says, events: build, onlyGo: "outbox_emit takes one event"}
}

func (i input) goOnly(why string) input {
	i.onlyGo = why
	return i
}

func (i input) sqlMay(why string) input {
	i.sqlDiffers = why
	return i
}

func inGroup(group string, inputs ...input) []input {
	for i := range inputs {
		inputs[i].group = group
		inputs[i].name = group + "/" + inputs[i].name
	}
	return inputs
}

// raw sets the data.
func raw(data string) func(*given) {
	return func(g *given) { g.payload = json.RawMessage(data) }
}

// typed sets a payload that the library has to encode.
func typed(payload any) func(*given) {
	return func(g *given) { g.payload = payload }
}

func aggregateID(text string) func(*given) { return func(g *given) { g.aggregateID = text } }
func tenantID(text string) func(*given)    { return func(g *given) { g.tenant = text } }
func dedupeKey(text string) func(*given)   { return func(g *given) { g.key = text } }

func header(name, value string) func(*given) {
	return func(g *given) { g.headers = map[string]string{name: value} }
}

func all(changes ...func(*given)) func(*given) {
	return func(g *given) {
		for _, change := range changes {
			change(g)
		}
	}
}

// storedSize makes the stored payload exactly this long.
func storedSize(size int) func(*given) {
	return func(g *given) {
		const id = "00000000-0000-7000-8000-000000000000"
		g.payload = json.RawMessage(`{"pad":""}`)
		pad := size - len(g.envelope(id))
		g.payload = json.RawMessage(`{"pad":"` + canary + strings.Repeat("x", pad-len(canary)) + `"}`)
	}
}

// A corpus that shrank, or says one thing twice, would prove less than its count.
func TestCorpusIsBigEnough(t *testing.T) {
	t.Parallel()
	inputs := corpus()
	perGroup := map[string]int{}
	seen := map[string]bool{}
	for _, in := range inputs {
		if seen[in.name] {
			t.Errorf("%s is there twice", in.name)
		}
		seen[in.name] = true
		perGroup[in.group]++
	}
	if len(inputs) < 200 {
		t.Errorf("%d inputs, want at least 200", len(inputs))
	}
	for _, group := range groups {
		if perGroup[group] < 10 {
			t.Errorf("group %s has %d inputs, want at least 10", group, perGroup[group])
		}
	}
	t.Log(fmt.Sprint(len(inputs), perGroup))
}
