// Package check checks a run of the outbox after it is over. It reads what was recorded (what producers
// committed, what the broker received, which faults were injected, what the relays did, what the tables
// held at the end) and counts what was kept and what was broken. It believes nobody: a row that says
// "published" is lost if the broker never saw the event.
//
// Feed a [Checker] with [Record] values, from memory with Add or from files of JSON lines with Read, ask
// it for Unresolved transactions and add what became of them, then call Verdict with a [Floor].
//
// # Order
//
// No clock orders deliveries: Delivery.Index, the position at which the broker took the message, does.
// Two records of one id or one transaction must be fed in the order in which they were written; apart
// from that, records may come in any order, so several files may be read one after the other. At is the
// database's clock (or the simulation's) and is used for leases, fences and outages only. Next, where a
// record has one, is the Index that the next delivery will have; 0 means that nobody knows.
//
// # What is counted
//
// An event is committed when a transaction that lists it ended ok; delivered when the broker has it at
// least once. "Zero" marks the counters that a passing run may not have.
//
//   - committed, delivered_distinct: committed events, and those of them that were delivered.
//   - ordered_aggregates: aggregate and topic pairs with at least two delivered versions.
//   - lost (zero): committed, and neither delivered, nor dead with a dead letter, nor discarded with an
//     operator's action, nor still open in the final table.
//   - phantom (zero): an id that was delivered, took effect, or has a row or a dead letter, and that no
//     committed transaction wrote.
//   - corrupted (zero): a delivery or a dead letter whose payload, headers, type, key or topic is not what
//     was emitted.
//   - order_violations (zero): an event whose first delivery came before the first delivery of a lower
//     version of the same aggregate and topic, or while that lower version is still to be delivered when
//     the run ends. A lower version that died without blocking, was skipped or was discarded no longer
//     counts for deliveries after that (Next), and not at all if nobody knows when. One that is lost is
//     counted as lost only. Equal versions (one transaction) have no order; version 0 has none.
//   - stuck (zero): committed, and its row still ready, retrying, waiting or parked at the end of a run
//     that says it drained, delivered or not: it would be sent forever.
//   - held_explained: as stuck, but of a type that End.UnknownTypes lists, or waiting or retrying behind a
//     lower seq of its aggregate that is such a parked event, or that is dead, blocking and on its topic.
//   - pending: still open and not delivered, in a run that does not say it drained.
//   - dead, discarded: not delivered, and dead with a letter, or discarded with an action.
//   - illegal_transitions (zero): a change that [LegalChange] does not know; a death, of anything but an unknown
//     type or the suspicion of killing relays, without a publish that failed since the last redrive (or more such
//     deaths than publishes that failed, where nobody knows what came when); an operator's change without
//     an action of that verb; a second applied settle to published; a discarded row without an action; a
//     dead row whose letter says blocking and that nobody skipped; published_at without the state or the
//     reverse; a row that is gone although nothing was allowed to delete it.
//   - dead_without_letter, letter_without_dead (zero): a dead row without a dead letter; a dead letter
//     whose row is not dead and that no operator redrove or discarded.
//   - held_without_row, row_without_held, held_differs (zero): a row of outbox_events that says that the event is held,
//     and outbox_held has none of it; a row of outbox_held of an event that is not held, or that is not there; one
//     that says another kind than the event has, has a time for what is no retry or none for one that is, or has
//     other names than the event.
//   - taken_back: events whose commit was durable and went with its server: a standby that was behind became the
//     primary. They may have been delivered, and need not be; they have no place in any order.
//   - redelivered: deliveries that a request asked for. requests_unserved (zero): a request that counts as
//     delivered and never was, or is open at the end of a run that drained. copies_out_of_order (zero): a copy whose
//     first delivery came before that of a copy of a lower version, of the same action, aggregate and topic,
//     unless one of the two requests failed or was canceled. sent_after_cancel (zero): a request whose copy was sent
//     after whoever canceled it was told so,
//     by somebody whose settle of it was applied: a relay that has lost the lane may not know it yet.
//   - duplicates: deliveries of an id beyond the first, and of a request beyond its first.
//   - duplicates_unexplained (zero): the m-th duplicate of an id for which there are, up to that delivery,
//     fewer than m causes. A cause is one publish of that id whose outcome was unknown, or that was
//     acknowledged and whose settle failed, is unknown or stale, or that was never settled by a relay that
//     was killed or lost the lane; or one fault of a kind that can duplicate, in force between the first
//     delivery and this one, whose scope is that id (or its topic, a relay or everything, if no relay
//     recorded what it published). A publish that failed for its topic, or was not sent, is a cause if a
//     fault that loses answers (broker_restart, broker_cut, broker_stalled, answers_dropped) fell into its
//     time, if it was handed over behind one of its line that ended in doubt, or if End.Doubtful lists its topic.
//     A failover that names the id took back what was written down about it. A delivery for a request that does not
//     exist is unexplained too.
//   - double_effects (zero): effects of an id beyond the first. effects_missing (zero): delivered without
//     an effect, when End.Effects says that consumers have finished.
//   - charged_wrongly (zero): an event with a charge of a class that is not the event's fault, or of any
//     class for a publish that lay, from start to charge, inside a fault of its topic; or whose
//     attempts, those of all its dead letters included, exceed the failed publishes that could be charged.
//   - owners_overlapping (zero): a lease of a lane that began while another token held it; a publish
//     begun while the same lease had another one of the same aggregate and topic in flight, unless
//     End.Pipelined lists the topic.
//   - stale_settles_applied (zero): a lease under which a settle was applied after another token had
//     taken the lane, or without ever having held it. A failover ends the leases that were not renewed after it,
//     and takes back acquisitions.
//   - unresolved (zero): transactions of which nobody knows whether they committed.
//   - malformed (zero): records that cannot be read or contradict others. torn: last lines cut by a kill.
//
// # What is not promised
//
// Content is compared by 64-bit fingerprints of the sums, which is enough against faults and not against
// an adversary. What was not recorded cannot be checked; [Floor] exists so that such a run does not pass.
package check
