// Package consumer is what a consumer's loop does with a message, whatever the broker: it reads the event, runs the
// handler of its type, and says what is to become of the message. The loops themselves, which receive and acknowledge,
// are packages of their own, one a broker.
//
//	compliance, err := consumer.New(consumer.Config{Name: "compliance"},
//
// consumer.On(events.LicenseStatusChanged, func(ctx context.Context, event *consumer.Event, license
//
//	events.LicenseStatus) error {
//				return outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
//					first, err := inbox.First(ctx, tx, "compliance", event.ID)
//					if err != nil {
//						return err
//					}
//					if !first {
//						return consumer.ErrDuplicate
//					}
//					// ... the effect, with the same tx ...
//				})
//			}))
//
// A handler returns nil when the event is handled, and the message is acknowledged. Whatever else it returns, or if it
// panics, the message comes again, later and later, and after a bound it goes where the broker keeps dead letters.
//
// # What is not promised
//
// Messages come more than once, and those of one aggregate not always in order: a handler marks what it has handled
// with the package inbox, in its own transaction, or is guarded by inbox/redisinbox; and one that stores the state that
// events carry asks inbox.Newer.
package consumer
