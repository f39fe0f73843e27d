package leaks

import (
	"fmt"
	"strings"
)

// birds are the canaries of a run, by where each is put.
type birds struct {
	// Secrets of a publisher's settings.
	databasePassword, listenPassword, natsPassword, natsToken, natsSeed, googleKey, traceKey Canary
	// wrong is in settings that are refused or do not work.
	wrong Canary
	// Personal data, by the part of an event that holds it.
	value, header, actor, badNumber, badEnum, badPattern, extraName, brokenEnvelope, badTime, large, headerName,
	headerLine, tenant, dedupe, lost, unknown Canary
}

// newBirds draws all of them.
func newBirds() *birds {
	b := &birds{}
	for name, canary := range b.byName() {
		*canary = NewCanary(name)
	}
	return b
}

func (b *birds) byName() map[string]*Canary {
	return map[string]*Canary{
		"database password": &b.databasePassword, "listen password": &b.listenPassword, "NATS password": &b.natsPassword,
		"NATS token": &b.natsToken,
		"NATS seed":  &b.natsSeed, "Google key": &b.googleKey, "key of the collector": &b.traceKey,
		"secret in a wrong setting": &b.wrong,
		"value in a payload":        &b.value, "value of a header": &b.header, "actor": &b.actor,
		"text for a number":       &b.badNumber,
		"value outside an enum":   &b.badEnum,
		"value against a pattern": &b.badPattern, "name of a field": &b.extraName, "broken envelope": &b.brokenEnvelope,
		"text for a time":           &b.badTime,
		"payload that is too large": &b.large, "name of a header": &b.headerName,
		"value of a header with a line break": &b.headerLine, "tenant": &b.tenant,
		"dedupe key": &b.dedupe, "payload for a missing topic": &b.lost, "payload of an unknown type": &b.unknown,
	}
}

// all lists them.
func (b *birds) all() []Canary {
	var list []Canary
	for _, canary := range b.byName() {
		list = append(list, *canary)
	}
	return list
}

// personal are those that events hold.
func (b *birds) personal() []Canary {
	return []Canary{
		b.value, b.header, b.actor, b.badNumber, b.badEnum, b.badPattern, b.extraName, b.brokenEnvelope, b.badTime, b.large,
		b.headerName, b.headerLine,
		b.tenant, b.dedupe, b.lost, b.unknown,
	}
}

// registry is the contracts of the run. The first topic has a stream, the other has none.
const registry = `contracts:
  - {type: order_placed, aggregate: order, topic: leaks.orders, on_dead: skip, max_attempts: 3, schema: order.json}
  - {type: order_changed, aggregate: order, topic: leaks.orders, on_dead: block, max_attempts: 3, schema: order.json}
  - {type: order_lost, aggregate: order, topic: missing.orders, on_dead: skip}
`

// orderSchema refuses in many ways.
const orderSchema = `{"type":"object","required":["email","total"],"additionalProperties":false,"properties":{
  "email":{"type":"string","maxLength":200000},"total":{"type":"integer"},"status":{"enum":["new","paid"]},
  "code":{"type":"string","pattern":"^[A-Z]+$"}}}`

// event is a row of the outbox. {id} in its payload becomes its id, and its dedupe key gets a number.
type event struct {
	kind, payload, headers string
	tenant, dedupe         string
}

// envelope is what a payload looks like, with these data.
func envelope(data string) string {
	return `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15.000000Z","data":` + data + `}`
}

// good is an event that is published.
func (b *birds) good(n int) event {
	payload := fmt.Sprintf(`{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15.000000Z",`+
		`"actor":{"type":"user","id":%q},"data":{"email":%q,"total":%d}}`,
		b.actor.Text, b.value.Text+"@example.com", n)
	return event{
		kind: "order_placed", payload: payload, headers: fmt.Sprintf(`{"x-user":%q}`, b.header.Text),
		tenant: b.tenant.Text, dedupe: b.dedupe.Text,
	}
}

// bad are events that somebody refuses: the registry, the envelope's rules, NATS.
func (b *birds) bad() []event {
	data := func(format string, c Canary) string { return envelope(fmt.Sprintf(format, c.Text)) }
	return []event{
		{payload: data(`{"email":"a","total":%q}`, b.badNumber)},
		{payload: data(`{"email":"a","total":1,"status":%q}`, b.badEnum)},
		{payload: data(`{"email":"a","total":1,"code":%q}`, b.badPattern)},
		{payload: data(`{"email":"a","total":1,%q:true}`, b.extraName)},
		{payload: fmt.Sprintf(`{%q:true}`, b.brokenEnvelope.Text)},
		{payload: fmt.Sprintf(`[%q]`, b.brokenEnvelope.Text)},
		{
			payload: fmt.Sprintf(`{"version":1,"eventId":%q,"occurredAt":"2026-03-01T12:30:15Z","data":{"email":"a","total":1}}`,
				b.brokenEnvelope.Text),
		},
		{
			payload: fmt.Sprintf(`{"version":1,"eventId":"{id}","occurredAt":%q,"data":{"email":"a","total":1}}`,
				b.badTime.Text),
		},
		{payload: data(`{"email":"%s`+strings.Repeat("x", 80_000)+`","total":1}`, b.large)},
		{payload: data(`{"email":"a","total":%q}`, b.badNumber), headers: fmt.Sprintf(`{"Nats-%s":"x"}`, b.headerName.Text)},
		{
			payload: envelope(`{"email":"a","total":1}`),
			headers: fmt.Sprintf(`{"Nats-%s":%q}`, b.headerName.Text, b.header.Text),
		},
		{
			payload: envelope(`{"email":"a","total":1}`),
			headers: fmt.Sprintf(`{"%s name":%q}`, b.headerName.Text, b.header.Text),
		},
		{payload: envelope(`{"email":"a","total":1}`), headers: fmt.Sprintf(`{"x-note":"one\ntwo %s"}`, b.headerLine.Text)},
		{payload: envelope(`{"email":"a","total":1}`), headers: fmt.Sprintf(`{"x-note":{"a":%q}}`, b.header.Text)},
		{payload: envelope(`{"email":"a","total":1}`), headers: fmt.Sprintf(`[%q]`, b.header.Text)},
	}
}

// odd are events that wait: of a topic that nobody has, and of a type that nobody knows.
func (b *birds) odd() []event {
	return []event{
		{kind: "order_lost", payload: envelope(fmt.Sprintf(`{"email":%q}`, b.lost.Text))},
		{kind: "order_forgotten", payload: envelope(fmt.Sprintf(`{"email":%q}`, b.unknown.Text))},
	}
}
