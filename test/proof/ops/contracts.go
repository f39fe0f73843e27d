package ops

import (
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// body is the data of every event; with it a payload has about 256 bytes.
type body struct {
	Filler string `json:"filler"`
}

var filler = strings.Repeat("x", 130)

// The topics. What is replayed goes to two others, which no contract names.
const (
	liveTopic     = "live"
	ordersTopic   = "orders"
	replayTopic   = "orders-new"
	canceledTopic = "orders-canceled"
)

// moved is the contract of live events.
func moved() *outbox.ContractFor[body] {
	return outbox.Define[body](outbox.Contract{Type: "thing_moved", Aggregate: "thing", Topic: liveTopic})
}

// placed is that of orders that go on without what died, and held of those that wait behind it.
func placed() *outbox.ContractFor[body] {
	return outbox.Define[body](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: ordersTopic})
}

func held() *outbox.ContractFor[body] {
	return outbox.Define[body](outbox.Contract{
		Type: "order_held", Aggregate: "order", Topic: ordersTopic, OnDead: outbox.OnDeadBlock,
	})
}

func registry() (*outbox.Registry, error) { return outbox.NewRegistry(moved(), placed(), held()) }
