package daemon_test

import (
	"log"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/outbox"
)

type OrderCreatedV1 struct {
	OrderID string `json:"orderId"`
}

var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{
	Type: "order_created", Aggregate: "order", Topic: "orders",
})

// A publisher with contracts that are compiled in. It is configured like outbox-publisher, without registry.file.
func Example() {
	registry, err := outbox.NewRegistry(OrderCreated)
	if err != nil {
		log.Fatal(err)
	}
	daemon.Main(daemon.Program{
		Name:     "shop-publisher",
		Registry: registry,
		Brokers:  []daemon.Broker{natsbroker.New()},
	})
}
