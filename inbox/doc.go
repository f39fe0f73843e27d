// Package inbox lets a consumer act once on an event that is delivered more than once.
//
// Brokers deliver at least once, and so does a relay. [First] marks an event as handled, in the consumer's own
// transaction; whoever is not the first skips the effect:
//
//	first, err := inbox.First(ctx, tx, "mailer", eventID)
//	if err != nil || !first {
//		return err // nil: it was handled before; commit or roll back, and acknowledge
//	}
//	// ... the effect, with the same tx ...
//
// [First] takes a pgx transaction, [FirstSQL] one of database/sql (also in the hands of sqlx or bun), [FirstGORM] the
// pool of a GORM transaction, as the outbox package does; outbox.InSchema names another schema than public here as
// well. Programs in other languages call the SQL function inbox_first. The tables are those of schema.Inbox.
//
// # What is promised
//
// The mark exists if and only if the transaction commits, and so does the effect: one effect, whichever way a process
// dies. Two deliveries at the same time: the second waits until the first transaction has ended, and is then told the
// truth. If that one was rolled back, or died, the second is the first.
//
// # What is not
//
// An effect that is not in the transaction, a mail or a call of another service, is not covered: it happens again when
// the process dies before the commit. So is one that is written through another connection or another transaction.
// What [Retention] has deleted is handled again if it comes again. The package imports nothing but the standard library
// and the outbox package, which does the same.
package inbox
