package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// The numbers of what goes wrong in the shop.
const (
	followers = 5 // prices behind the one that is dead and blocks
	greylist  = 4 // mails that are tried again
	unknown   = 6 // events of a type that no relay knows
	shipments = 30
	coupons   = 8 // dead, with one behind each
)

// blockedProduct is the product with the price that breaks its contract.
const blockedProduct = "espresso-machine"

// shop is a small shop with its relays and its broker.
type shop struct {
	plan   Plan
	db     *database
	broker broker
	bell   *outbox.Doorbell
	log    *slog.Logger
	random *rand.Rand
	number int // of the last order
	relays []func() error
	// endWorker ends who works on jobs.
	endWorker func()
	writer    pgx.Tx    // stays open
	job       outbox.ID // that goes on
}

func newShop(plan Plan, db *database, log *slog.Logger) *shop {
	return &shop{
		plan: plan, db: db, log: log, random: rand.New(rand.NewPCG(1, 2)), number: 4_700,
		bell: outbox.NewDoorbell(outbox.RingPgx(db.pool, shopName)),
	}
}

// open starts the relays, and has everything happen that somebody shall find.
func (s *shop) open(ctx context.Context) error {
	for _, name := range []string{"shop-relay-0", "shop-relay-1"} {
		if err := s.startRelay(ctx, name); err != nil {
			return err
		}
	}
	s.startWorker(ctx)
	for _, step := range []func(context.Context) error{
		s.history, s.trouble, s.decisions, s.await, s.startJob, s.leaveOpen,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close stops all of it.
func (s *shop) Close() (err error) {
	if s.writer != nil {
		err = s.writer.Rollback(context.Background())
	}
	if s.endWorker != nil {
		s.endWorker()
	}
	for _, stop := range s.relays {
		err = errors.Join(err, stop())
	}
	s.bell.Close()
	return err
}

// startWorker starts who works on jobs, as a publisher does beside its relay.
func (s *shop) startWorker(ctx context.Context) {
	working, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		operator.New(s.db.pool, shopName).NewWorker("shop-worker", s.log).Run(working)
	}()
	s.endWorker = func() {
		stop()
		<-ended
	}
}

// deploy starts a relay that knows all types, in the place of the others.
func (s *shop) deploy(ctx context.Context) error {
	old := s.relays
	s.relays = nil
	if err := s.startRelay(ctx, "shop-relay-2", loyaltyCollected); err != nil {
		return err
	}
	for _, stop := range old {
		if err := stop(); err != nil {
			return fmt.Errorf("console: stop a relay: %w", err)
		}
	}
	return nil
}

func (s *shop) startRelay(ctx context.Context, name string, more ...outbox.AnyContract) error {
	registry, err := known(more...)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	address, err := s.db.address(name)
	if err != nil {
		return err
	}
	r, err := relay.New(relay.Config{
		Database: address, Schema: shopName, Registry: registry, Publisher: publish.PublisherFunc(s.broker.publish),
		Name: name, Version: "shop 4.2.0", Logger: s.log, SurveyEvery: time.Second,
		// What is greylisted waits long enough to be looked at.
		Settings: relay.Settings{BaseDelay: 10 * time.Second, MaxDelay: 20 * time.Second},
	})
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	s.relays = append(s.relays, func() error {
		stop()
		return <-ended
	})
	return nil
}

// emit writes events in one transaction.
func (s *shop) emit(ctx context.Context, events ...outbox.Event) error {
	return s.bell.After(outbox.InTx(ctx, s.db.pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, outbox.InSchema(tx, shopName), events...)
		return err
	}))
}

// order is one more order, which is paid.
func (s *shop) order() []outbox.Event {
	s.number++
	id, cents := fmt.Sprintf("o-%d", s.number), 500+s.random.IntN(20_000)
	created := orderCreated.New(id, data{
		"customer": customer(s.random.IntN(400)), "total": data{"currency": "EUR", "cents": cents},
		"lines": []data{{"sku": "beans-1kg", "quantity": 1 + s.random.IntN(4)}},
	})
	// Beyond what JavaScript counts to.
	ledger := int64(9_007_199_254_740_993) + int64(s.number)
	paid := orderPaid.New(id, data{"method": "card", "cents": cents, "ledger": ledger})
	for _, event := range []*outbox.Event{&created, &paid} {
		event.TenantID = []string{"berlin", "lyon", "porto"}[s.number%3]
		event.Headers = map[string]string{"traceparent": trace(s.random)}
	}
	created.DedupeKey = created.TenantID + "/checkout-" + id
	return []outbox.Event{created, paid}
}

func customer(number int) string { return fmt.Sprintf("c-%03d", number) }

func trace(random *rand.Rand) string {
	return fmt.Sprintf("00-%016x%016x-%016x-01", random.Uint64()|1, random.Uint64(), random.Uint64()|1)
}

// history is what went well: some hundred orders, and what was written down of the hours before.
func (s *shop) history(ctx context.Context) error {
	for range s.plan.Orders / 50 {
		var events []outbox.Event
		for range 50 {
			events = append(events, s.order()...)
		}
		if err := s.emit(ctx, events...); err != nil {
			return fmt.Errorf("console: orders: %w", err)
		}
	}
	for _, name := range []string{"minutes", "left"} {
		if err := s.db.run(ctx, shopName, name); err != nil {
			return err
		}
	}
	return nil
}

// trouble is what goes wrong.
func (s *shop) trouble(ctx context.Context) error {
	var events []outbox.Event
	for n := range s.plan.Invoices {
		for c := range s.plan.Customers {
			good := invoiceIssued.New(customer(c), data{"number": fmt.Sprintf("2026-%d-%d", c, n), "currency": "EUR"})
			bad := invoiceIssued.New(customer(c), data{
				"number": fmt.Sprintf("2026-%d-%d-b", c, n), "currency": "EURO", "cents": 1_999 + c,
			})
			events = append(events, good, bad)
		}
	}
	for n := range 40 {
		events = append(events, priceChanged.New(fmt.Sprintf("product-%d", n), data{"currency": "EUR", "cents": 100 * n}))
	}
	events = append(events, priceAnyhow.New(blockedProduct, data{"currency": "EURO", "cents": 39_900}))
	for n := range followers {
		events = append(events, priceChanged.New(blockedProduct, data{"currency": "EUR", "cents": 38_900 - 100*n}))
	}
	for n := range 2 * coupons {
		state := data{"state": []string{"expired", "good"}[n/coupons]}
		events = append(events, couponRedeemed.New(fmt.Sprintf("summer-%d", n%coupons), state),
			couponRedeemed.New(fmt.Sprintf("winter-%d", n), data{"state": "good"}))
	}
	for n := range shipments {
		events = append(events, shipmentSent.New(fmt.Sprintf("o-%d", s.number-n), data{"carrier": "north", "parcels": 1}))
	}
	for n := range greylist {
		events = append(events, emailRequested.New(customer(n), data{"to": customer(n) + "@example.net"}))
	}
	for n := range 20 {
		events = append(events, emailRequested.New(customer(n+100), data{"to": customer(n) + "@example.com"}))
	}
	for n := range unknown {
		events = append(events, loyaltyCollected.New(customer(n), data{"points": 10 * n}))
	}
	return s.emit(ctx, append(events, largeEvent())...)
}

// decisions are what operators have done already.
func (s *shop) decisions(ctx context.Context) error {
	person := operator.New(s.db.pool, shopName)
	by := func(actor, reason string) operator.Action {
		return operator.Action{ID: outbox.NewID(), Actor: actor, Reason: reason}
	}
	newsletter := operator.TopicScope("newsletter")
	if _, err := person.Pause(ctx, by("ines", "the new one goes out on Monday"), newsletter); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	if _, err := person.Limit(ctx, by("jon", "the ledger is being moved"), paymentsTopic, 200); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	return nil
}

// startJob has orders sent to a second topic, slowly, so that there is a job to look at.
func (s *shop) startJob(ctx context.Context) error {
	person := operator.New(s.db.pool, shopName)
	filter, err := operator.ParseFilter("type:order_created")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	plan, err := person.PlanJob(ctx, operator.JobSpec{
		Verb: operator.VerbRedeliver, Filter: filter, Topic: "orders-warehouse", Rate: 1,
	}, s.plan.Patience)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	action := operator.Action{ID: outbox.NewID(), Actor: "jon", Reason: "the warehouse has a new consumer"}
	job, err := person.StartJob(ctx, action, plan.Spec, plan.Events)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	s.job = job.ID
	return nil
}

// await waits until the relays have found all that is wrong.
func (s *shop) await(ctx context.Context) error {
	dead := int64(s.plan.Customers * s.plan.Invoices)
	const held, of = `SELECT count(*) FROM shop.outbox_held WHERE kind = `, ` AND aggregate_type = `
	for what, condition := range map[string]struct {
		query string
		want  int64
	}{
		"invoices die":      {`SELECT count(*) FROM shop.outbox_dlq WHERE event_type = 'invoice_issued'`, dead},
		"a price blocks":    {held + `4` + of + `'product'`, 1},
		"prices wait":       {held + `3` + of + `'product'`, followers},
		"coupons block":     {held + `4` + of + `'coupon'`, coupons},
		"coupons wait":      {held + `3` + of + `'coupon'`, coupons},
		"mails are retried": {held + `1 AND event_type = 'email_requested'`, greylist},
		"types are parked":  {held + `2`, unknown},
		"shipments fail": {
			`SELECT count(DISTINCT topic) FROM shop.outbox_topics WHERE paused AND topic = 'shipments'`, 1,
		},
		"orders are paid for": {
			`SELECT count(*) FROM shop.outbox_events WHERE event_type LIKE 'order%' AND state <> 6`, 0,
		},
	} {
		if err := eventually.Within(ctx, s.plan.Patience, what, func() (bool, error) {
			n, err := s.db.number(ctx, condition.query)
			return n == condition.want, err
		}); err != nil {
			return fmt.Errorf("console: the shop: %w", err)
		}
	}
	return nil
}

// leaveOpen leaves a transaction open that has emitted.
func (s *shop) leaveOpen(ctx context.Context) (err error) {
	if s.writer, err = s.db.pool.Begin(ctx); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	_, err = outbox.Emit(ctx, outbox.InSchema(s.writer, shopName), s.order()...)
	return err
}

// closeWriter ends it.
func (s *shop) closeWriter(ctx context.Context) error {
	writer := s.writer
	s.writer = nil
	return writer.Commit(ctx)
}

// flow emits an order now and then until the context ends, so that there is something to see.
func (s *shop) flow(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.emit(ctx, s.order()...); err != nil && ctx.Err() == nil {
			return fmt.Errorf("console: an order: %w", err)
		}
	}
}
