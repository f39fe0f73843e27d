package crash

import "slices"

// Description is one point.
type Description struct {
	Name string
	// Where says in a sentence what is done by then and what is not.
	Where string
	// OnServer tells that the process dies while the server is in the middle of its statement. No line of ours
	// runs at that moment: a trigger of the proof waits there for the process to be killed.
	OnServer bool
	// ByConsumers tells that those who handle events come here, and relays do not: proof-inbox dies at it.
	ByConsumers bool
	// ByWorkers tells that those who work on jobs come here, and relays do not: proof-ops dies at it.
	ByWorkers bool
}

// copying is what sends a published event again.
func copying() []Description {
	return []Description{
		{Name: "copy.before_send", Where: "a request is taken, and its copy is not handed to the publisher"},
		{Name: "copy.after_ack", Where: "the broker has the copy, and the request is open"},
		{Name: "copy.before_settle", Where: "how requests ended is known, and not written down"},
		{Name: "copy.after_settle", Where: "how requests ended is written down, and the relay does not know"},
	}
}

// working is how a part of a job is done.
func working() []Description {
	return []Description{
		{Name: "job.before_part", Where: "the events of a part are found, and nothing is done to them", ByWorkers: true},
		{
			Name: "job.before_commit", Where: "a part is done, logged and not committed; the session ends with the process",
			ByWorkers: true,
		},
		{Name: "job.after_part", Where: "a part is committed, and the worker does not know", ByWorkers: true},
	}
}

// List returns all points, in the order in which an event's path passes them. Where a step is one statement
// that commits itself, what lies between its beginning and its commit is on the server.
func List() []Description {
	return slices.Concat(emitting(), reading(), publishing(), settling(), copying(), working(), leaving(), consuming())
}

// emitting is what writes events: migrations and emitters.
func emitting() []Description {
	return []Description{
		{Name: "migrate.before", Where: "a migration is due and its transaction has only read"},
		{Name: "migrate.mid", Where: "the first statement of a migration is done, and others are to come"},
		{Name: "migrate.after", Where: "a migration is committed, and the next has not begun"},

		{Name: "emit.before_insert", Where: "the transaction is open, and the events are checked and not sent"},
		{Name: "emit.after_insert", Where: "the events are in the table, and the transaction is open"},
		{Name: "emit.before_commit", Where: "the application is done, and InTx has not sent COMMIT"},
		{Name: "emit.after_commit", Where: "COMMIT is answered, and the caller of InTx does not know"},
	}
}

// reading is how a relay comes to its events: lanes, what waits in them, what is new.
func reading() []Description {
	return []Description{
		{Name: "register.after", Where: "the relay is there with its first beat, and does not know"},

		{Name: "end.before", Where: "another relay has not beaten for a lease, and is not ended"},
		{Name: "end.after", Where: "it is ended and its lanes are free, and nobody has taken one"},

		{Name: "claim.before", Where: "lanes are wanted and not asked for"},
		{
			Name:  "claim.after_update",
			Where: "the lanes' rows are changed; the session ends with the process, so nothing is taken", OnServer: true,
		},
		{
			Name: "claim.before_commit", Where: "the acquisition is about to commit, and does; nobody hears of it",
			OnServer: true,
		},
		{Name: "claim.after_commit", Where: "lanes are taken, and the relay has not looked into them"},
		{Name: "claim.before_held", Where: "lanes are taken, and what is held in them is about to be read"},

		{Name: "renew.before", Where: "lanes are held, and the beat that keeps them is not sent"},
		{Name: "renew.after", Where: "the lanes' owner has beaten, and does not know"},
		{
			Name:  "floor.after_update",
			Where: "a beat with higher floors is written; the session ends with the process, so it is not", OnServer: true,
		},
		{
			Name: "floor.before_commit", Where: "a beat with higher floors is about to commit, and does; nobody hears of it",
			OnServer: true,
		},

		{Name: "unpark.before", Where: "parked events of known types are about to be let go"},
		{Name: "unpark.after", Where: "some of them are retrying, and the relay does not know"},

		{Name: "barrier.before", Where: "events are read and may not be durable"},
		{Name: "barrier.after", Where: "events are durable, and none is on its way"},
	}
}

// publishing is the way of an event to the broker.
func publishing() []Description {
	return []Description{
		{Name: "validate.before", Where: "an event is chosen and not held to its contract"},
		{Name: "validate.after", Where: "an event fits its contract and has no message"},

		{Name: "note.before", Where: "an event shall be sent alone, and nobody knows"},
		{Name: "note.after", Where: "the event is noted and not sent"},

		{Name: "publish.before_send", Where: "the message is made and not sent"},
		{
			Name:  "publish.after_send",
			Where: "the broker has the message, and its acknowledgement has come as far as the process's socket",
		},
		{Name: "publish.after_ack", Where: "the publisher has returned, and the relay's core does not know"},
		{
			Name:  "publish.mid_batch",
			Where: "some of the events that were chosen together are handed to the publisher, the others are not",
		},
		{Name: "publish.after_batch", Where: "everything that was sent is answered, and the last of it is not settled"},
	}
}

// settling is how what became of an event is written down.
func settling() []Description {
	return []Description{
		{Name: "settle.before", Where: "what became of events is known here and nowhere else"},
		{
			Name: "settle.mid_batch", Where: "one row of several is changed; the session ends with the process, so none is",
			OnServer: true,
		},
		{
			Name: "settle.after_update", Where: "all rows are changed; the session ends with the process, so none is",
			OnServer: true,
		},
		{Name: "settle.before_commit", Where: "the settle is about to commit, and does; nobody hears of it", OnServer: true},
		{Name: "settle.after_commit", Where: "the settle is answered, and the relay's core does not know"},

		{Name: "retry.before", Where: "an event was refused for now, and its next attempt is not written down"},
		{Name: "retry.after", Where: "it is written down, and the relay's core does not know"},

		{Name: "park.before", Where: "an event has a type that is not known, and is not set aside"},
		{Name: "park.after", Where: "it is set aside, and the relay's core does not know"},

		{
			Name:     "dead.before_insert",
			Where:    "the event's row is dead and its letter is not written; the session ends with the process, so it lives",
			OnServer: true,
		},
		{
			Name: "dead.after_insert", Where: "row and letter are written; the session ends with the process, so neither is",
			OnServer: true,
		},
		{Name: "dead.before_commit", Where: "a death is about to commit, and does; nobody hears of it", OnServer: true},
		{Name: "dead.after_commit", Where: "a death is committed, and the relay's core does not know"},

		{Name: "quarantine.before", Where: "an event has killed relays, and its death is not written down"},
		{Name: "quarantine.after", Where: "it is dead, and the relay's core does not know"},
	}
}

// leaving is the end of a relay, and what operators do.
func leaving() []Description {
	return []Description{
		{Name: "release.before", Where: "lanes are drained and not given back"},
		{Name: "release.after", Where: "lanes are given back, and the relay does not know"},

		{Name: "shutdown.after_signal", Where: "the relay was told to stop, and what is in flight is in flight"},

		{
			Name:  "redrive.before",
			Where: "an operator's transaction is open, and nothing is changed; the other verbs pass here as well",
		},
		{
			Name:  "redrive.after_insert",
			Where: "the events' rows are changed and the action is logged; the session ends with the process", OnServer: true,
		},
		{Name: "redrive.before_commit", Where: "an operator's action is answered and not committed"},
		{Name: "redrive.after_commit", Where: "it is committed, and the operator does not know"},
	}
}

// consuming is the way of an event through a consumer's inbox.
func consuming() []Description {
	return []Description{
		{
			Name: "first.before", Where: "a consumer's transaction is open, and the event is not marked in it",
			ByConsumers: true,
		},
		{
			Name: "first.after", Where: "the event is marked in the transaction, and its effect has not begun",
			ByConsumers: true,
		},
		{Name: "hold.before", Where: "a consumer's guard has not asked Redis about the event", ByConsumers: true},
		{Name: "hold.after", Where: "the event is held in Redis, and the handler has not begun", ByConsumers: true},
		{Name: "check.before", Where: "the one-call form has not asked Redis about the event", ByConsumers: true},
		{
			Name: "check.after", Where: "the one-call form has marked the event, and its effect has not begun: it is lost",
			ByConsumers: true,
		},
		{Name: "effect.after", Where: "the effect is done, and the handler has not returned", ByConsumers: true},
		{
			Name:        "mark.before",
			Where:       "the handler has finished, and the event is not marked in Redis: the effect will happen again",
			ByConsumers: true,
		},
		{Name: "mark.after", Where: "the event is marked in Redis, and the message is not acknowledged", ByConsumers: true},
		{Name: "free.before", Where: "the handler has failed, and the event is still held in Redis", ByConsumers: true},
		{
			Name: "free.after", Where: "the event of a failed handler is free again, and the message is not refused",
			ByConsumers: true,
		},
	}
}
