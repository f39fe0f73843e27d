// Package redisinbox is a consumer's memory of what it has handled, in Redis.
//
// [Guard.Do] runs a handler for an event that nobody has handled. While it runs, the event is held: a copy that comes
// meanwhile is told to come back later, and if the process dies the hold ends by itself and the event is handled when
// it is delivered again. When the handler is done, so is the event, for as long as Config.Keep says. Nothing is lost.
// An effect happens twice when the process dies between effect and mark, when a handler goes on after its hold was
// lost, and when Redis forgets.
//
// [Guard.CheckAndMarkProcessed] marks an event in one call, before its effect. It is as simple as it is lossy: if the
// process dies between mark and effect, every copy that follows is taken for handled. So it is deprecated from the
// start, with [Guard.Delete], which takes its mark back.
//
// Neither makes an effect happen exactly once, because Redis and the effect are two places. Where the effect is in
// PostgreSQL, mark it in the same transaction instead.
package redisinbox
