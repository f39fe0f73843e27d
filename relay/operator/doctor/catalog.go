package doctor

import "slices"

// A Kind is a finding that there can be.
type Kind struct {
	Code     string
	Severity Severity
	Stage    string
	// Cause is why it matters.
	Cause string
}

// Kinds are all findings that there can be, in the order of the stages.
var Kinds = []Kind{
	{
		"name_unknown", Error, "name",
		"the name of the server leads nowhere: it is misspelt, or this machine asks the wrong name server",
	},
	{
		"port_closed", Error, "port",
		"nobody answers there: the server is down, listens elsewhere, or something in between lets nothing " +
			"through",
	},
	{
		"tls_failed", Error, "tls",
		"the connection must be encrypted and the server verified, and one of both did not come about",
	},
	{"login_failed", Error, "login", "the server does not let this user in with what it shows"},
	{"database_missing", Error, "login", "the server is the wrong one, or the database has another name"},
	{"connect_failed", Error, "login", "the server answers, and takes no session"},
	{"standby", Error, "login", "a standby only reads: relays and producers need the primary"},

	{
		"clock_differs", Warning, "clock",
		"ages on this machine are wrong by as much, and what compares times of both is, too",
	},

	{"no_outbox", Error, "schema", "there are no tables: nothing can be emitted"},
	{"schema_unreadable", Error, "schema", "without the viewer's rights nothing can be looked at"},
	{"schema_old", Error, "schema", "this version works with newer tables; a relay of it does not start on these"},
	{
		"schema_new", Error, "schema",
		"what newer migrations have changed, this program does not know, and says nothing about",
	},
	{
		"migration_unrecorded", Warning, "schema",
		"the next 'migrate up' would apply migrations again that are in the tables already, and fail",
	},
	{
		"object_missing", Error, "schema",
		"somebody has dropped it, or a restore was partial: whoever needs it fails",
	},
	{
		"trigger_missing", Error, "schema",
		"it keeps what was written from being changed, or checks what is written",
	},
	{
		"trigger_disabled", Error, "schema",
		"it keeps what was written from being changed, or checks what is written; a load or restore has left " +
			"it off",
	},
	{
		"function_unpinned", Error, "schema",
		"it looks for its tables by the caller's search_path, where others could put some of their own",
	},
	{
		"schema_open", Error, "schema",
		"some functions run as the owner: what others make in this schema could be taken for something that " +
			"they mean",
	},

	{
		"part_incomplete", Error, "rights",
		"the role was granted its part before a migration that added to it, or never",
	},
	{
		"grants_differ", Warning, "rights",
		"a GRANT by hand, or a migration since the last 'outboxctl grant': too little fails, too much is not " +
			"meant",
	},
	{
		"rows_hidden", Error, "rights",
		"row level security hides events from a role that must see all of them: it finds no work, and nobody " +
			"sees why",
	},

	{"index_missing", Error, "storage", "statements that need it read the whole table"},
	{
		"index_invalid", Error, "storage",
		"a CREATE INDEX CONCURRENTLY or REINDEX was cut off: the index costs every emit, and no statement " +
			"uses it",
	},
	{
		"index_on_delivery", Warning, "storage",
		"publishing changes these columns: with one index on them every publish writes into all indexes of " +
			"the table",
	},
	{
		"index_costly", Warning, "storage",
		"PostgreSQL plans a partial index, and one over an expression, again for every statement that emits",
	},
	{
		"check_costly", Warning, "storage",
		"PostgreSQL plans a CHECK of the table again for every statement that emits",
	},
	{
		"table_unlogged", Error, "storage",
		"after a crash of the server the table is empty, and standbys never have its rows",
	},
	{
		"table_settings", Warning, "storage",
		"without the room that fillfactor leaves a publish writes into every index; with coarser autovacuum " +
			"the table grows",
	},
	{
		"autovacuum_off", Error, "storage",
		"nothing takes away old versions of rows: the tables grow, and get slower with every event",
	},
	{
		"sequence_cached", Error, "storage",
		"sessions draw blocks of numbers: events of one aggregate get numbers out of order",
	},
	{
		"sequence_behind", Error, "storage",
		"the table came without its sequence: new events have numbers below older ones, and relays pause",
	},

	{
		"not_durable", Error, "settings",
		"after a crash of the server commits are gone that were acknowledged, and with them events, or that " +
			"they were published",
	},
	{
		"commit_not_durable", Warning, "settings",
		"after a crash of the server the last transactions of this role are gone, with their events, although" +
			" they were acknowledged",
	},
	{
		"triggers_off", Error, "settings",
		"in sessions of this role no trigger fires: nothing checks what it writes, and nothing keeps it from " +
			"changing events",
	},
	{
		"read_only_role", Error, "settings",
		"every transaction of this role only reads: it can neither emit nor settle",
	},
	{
		"planner_off", Warning, "settings",
		"statements of this role cannot use their indexes in the order that they need",
	},

	{
		"plan_bad", Warning, "plans",
		"the relay asks this many times a second: without its index every one of them reads the whole table",
	},

	{
		"old_writer", Warning, "transactions",
		"it has written to the outbox and not committed: its own events wait, everything else goes on, and " +
			"relays have more and more to read past",
	},
	{
		"old_snapshot", Warning, "transactions",
		"it may still look at old versions of rows, so none goes away: tables grow and get slower",
	},
	{
		"old_prepared", Warning, "transactions",
		"nobody has ended it: its own events wait, and no old version of a row goes away, also across restarts",
	},
	{
		"slot_unused", Warning, "transactions",
		"the server keeps all log since then for a reader that does not come, until its disk is full",
	},

	{"no_relay", Error, "fleet", "no relay is alive: nothing is published"},
	{
		"relay_dead", Error, "fleet",
		"it died without giving back its lanes, and no other relay has ended it: they publish nothing",
	},
	{
		"lanes_unheld", Warning, "fleet",
		"what is in these lanes is not published until a relay takes them, which takes a moment after a start" +
			" or a death",
	},
	{
		"type_unknown", Warning, "fleet",
		"events of these types are parked: no relay that is alive knows them, and in time they die",
	},
	{
		"topic_failing", Warning, "fleet",
		"relays have paused the topic by themselves, because publishing to it fails, and try it again now and" +
			" then",
	},
	{
		"restored", Error, "fleet",
		"the tables were last used on another server: this is a copy or a backup. Relays pause, since they " +
			"might send again what was sent, and do not show as alive",
	},
	{"paused", Notice, "fleet", "an operator has paused it, and nobody has resumed it"},
	{"limited", Notice, "fleet", "an operator has limited how fast it goes out, and nobody has lifted that"},
	{
		"job_idle", Warning, "fleet",
		"no outbox-publisher works on it: none runs, none has the operator's grant or the right to read what the filter " +
			"asks for, or its log says why. What somebody decided about these events is not done",
	},
	{
		"dead_blocking", Warning, "fleet",
		"what comes later for the same aggregates waits behind them, until somebody decides",
	},
	{
		"retention_halted", Error, "retention",
		"the last run would have deleted more than time alone explains, so it deleted nothing: the tables " +
			"grow",
	},
	{"retention_stale", Warning, "retention", "nobody runs it: what is published stays, and the tables grow"},

	{"redis_unreachable", Error, "redis", "consumers that mark events in Redis cannot, and wait"},
	{
		"redis_may_evict", Error, "redis",
		"Redis forgets marks when its memory is full, and their events are handled again",
	},
	{
		"redis_no_persistence", Notice, "redis",
		"a restart of Redis forgets marks, and copies of their events are handled again",
	},
	{
		"redis_not_verified", Warning, "redis",
		"whoever is in between can read and change marks, and take the password",
	},
	{"redis_unknown", Notice, "redis", "Redis does not tell its settings, as some that are rented do not"},

	{"config_invalid", Error, "broker", "outbox-publisher would not start with it"},
	{"broker_unreachable", Error, "broker", "events wait until the broker answers"},
	{
		"broker_no_jetstream", Error, "broker",
		"without JetStream nothing keeps messages, and nothing acknowledges them",
	},
	{"topic_invalid", Error, "broker", "no topic can have this name: events of its types wait"},
	{"topic_missing", Error, "broker", "nothing takes the messages of this topic: events of its types wait"},
	{"topic_forbidden", Error, "broker", "the publisher may not publish there: events of the topic's types wait"},
	{
		"topic_elsewhere", Error, "broker",
		"another stream has the subject than the one that must take the messages: they are refused, and " +
			"events wait",
	},
	{"stream_in_memory", Warning, "broker", "a restart of the broker forgets messages that it has acknowledged"},
	{"stream_not_replicated", Notice, "broker", "the loss of one machine is the loss of its messages"},
	{"topic_no_subscription", Warning, "broker", "what is published to nobody is lost"},
	{"topic_one_replica", Warning, "broker", "what is acknowledged goes with one disk"},
	{
		"topic_one_in_sync", Warning, "broker",
		"one broker may acknowledge alone, and take the messages along when it is lost",
	},
	{"topic_unclean_election", Warning, "broker", "messages that were acknowledged can vanish when a broker is lost"},
	{"topic_compacted", Notice, "broker", "of the events of one aggregate the topic keeps the last one only"},
	{"topic_settings_unknown", Notice, "broker", "whether acknowledged messages are safe is not known"},
	{"topic_unknown", Notice, "broker", "whether anybody gets the messages is not known"},

	{"not_examined", Warning, "any", "something could not be looked at"},
}

// New is a finding of a kind. The fix, or advice, is the caller's to add.
func New(code, problem string) Finding {
	at := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Code == code })
	if at < 0 {
		return Finding{Code: code, Severity: Warning, Problem: problem}
	}
	kind := Kinds[at]
	return Finding{Code: code, Severity: kind.Severity, Stage: kind.Stage, Problem: problem, Cause: kind.Cause}
}
