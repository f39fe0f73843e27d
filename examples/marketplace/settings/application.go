package settings

import (
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// The keys of the API, the workers and the tools. Where the publisher has the same one, its variable serves too.
var (
	DatabaseURL = config.Secret("database.url", config.Spec[config.Hidden]{
		Required: true, Example: "postgres://shop@127.0.0.1/marketplace", Doc: "The database of the API, with the outbox.",
	})
	WorkerDatabaseURL = config.Secret("worker.database_url", config.Spec[config.Hidden]{
		Otherwise: "`database.url`", Doc: "The database of the workers, with the inbox.",
	})
	APIListen = config.Text("api.listen", config.Spec[string]{
		Default: "127.0.0.1:8080", Doc: "The address of the API. It asks nobody who he is.",
	})
	WorkerListen = config.Text("worker.listen", config.Spec[string]{
		Default: "127.0.0.1:8087", Doc: "The address of the worker's probes and metrics.",
	})

	Broker = config.Choice("broker", []string{"pubsub", "nats"}, config.Spec[string]{
		Default: "pubsub", Doc: "Where events come from.",
	})
	PubSubProject = config.Text("pubsub.project", config.Spec[string]{Doc: "The project of the topics and subscriptions."})
	PubSubAddress = config.Text("pubsub.endpoint", config.Spec[string]{
		Otherwise: "Google's", Doc: "Where Pub/Sub is. One on this machine is an emulator.",
	})
	NATSURL = config.Secret("nats.url", config.Spec[config.Hidden]{
		Example: "tls://nats.example.com:4222", Doc: "The servers, with commas between.",
	})
	NATSStream = config.Text("nats.stream", config.Spec[string]{Default: "marketplace", Doc: "The stream of all topics."})

	OrdersSubscription = config.Text("inbox.orders_subscription", config.Spec[string]{
		Default: "pf-domain-events-orders", Doc: "The subscription of the domain topic that the read model of orders reads.",
	})
	InboxStore = config.Choice("inbox.store", []string{"postgres", "redis"}, config.Spec[string]{
		Default: "postgres", Doc: "Where the compliance consumer remembers what it has handled.",
	})
	RedisURL = config.Secret("redis.url", config.Spec[config.Hidden]{
		Example: "redis://127.0.0.1:6379", Doc: "The Redis of `inbox.store: redis`.",
	})
	RedisPrefix = config.Text("redis.prefix", config.Spec[string]{
		Default: "pf", Doc: "What the keys in Redis begin with.",
	})
	RedisHold = config.Duration("redis.hold", config.Spec[time.Duration]{
		Default: 30 * time.Second, Check: positive,
		Doc: "How long an event waits in Redis whose worker died while it handled it.",
	})
)

// ApplicationKeys are those that the publisher does not have.
var ApplicationKeys = []config.AnyKey{
	WorkerDatabaseURL, APIListen, WorkerListen, OrdersSubscription, InboxStore, RedisURL, RedisPrefix, RedisHold,
}

// shared are the keys that the publisher has too.
var shared = append([]config.AnyKey{
	DatabaseURL, Broker, PubSubProject, PubSubAddress, NATSURL, NATSStream, daemon.TopicDefault, daemon.InsecureAllow,
}, Keys...)

// Load reads the configuration of the API, a worker or a tool, from flags and the environment, and holds it to what the
// program needs. Its variables begin with MARKETPLACE_; those of the publisher, POSTHASTE_DATABASE_URL and so on, are
// taken as well, so that one environment serves all programs.
func Load(args, environ []string, needs ...func(*config.Values) []config.Problem) (*config.Values, error) {
	set := config.Set{
		Prefix:   "MARKETPLACE_",
		Keys:     slices.Concat(ApplicationKeys, shared),
		Defaults: map[string]string{daemon.TopicDefault.Name(): Defaults[daemon.TopicDefault.Name()]},
		Check: func(values *config.Values) []config.Problem {
			problems := checkSecure(values)
			for _, need := range needs {
				problems = append(problems, need(values)...)
			}
			return problems
		},
	}
	for _, key := range shared {
		variable := "POSTHASTE_" + strings.ToUpper(strings.ReplaceAll(key.Name(), ".", "_"))
		set.Aliases = append(set.Aliases, config.Alias{Variable: variable, Key: key.Name()})
	}
	for _, alias := range Aliases {
		if !strings.HasPrefix(alias.Key, "relay.") { // those are the publisher's alone
			set.Aliases = append(set.Aliases, alias)
		}
	}
	return set.Load(args, environ)
}

// NeedsBroker says what is missing for the chosen broker.
func NeedsBroker(values *config.Values) []config.Problem {
	if Broker.Get(values) == "nats" {
		return append(required(values, NATSURL), checkNATS(values)...)
	}
	return required(values, PubSubProject)
}

// NeedsInbox says what is missing for the chosen inbox.
func NeedsInbox(values *config.Values) []config.Problem {
	if InboxStore.Get(values) == "redis" {
		return required(values, RedisURL)
	}
	return nil
}

func required(values *config.Values, key config.AnyKey) []config.Problem {
	if values.IsSet(key) {
		return nil
	}
	return []config.Problem{values.Problem(key, "is missing")}
}

// WorkerDatabase is where the workers keep what they make of events.
func WorkerDatabase(values *config.Values) string {
	if values.IsSet(WorkerDatabaseURL) {
		return WorkerDatabaseURL.Get(values).Reveal()
	}
	return DatabaseURL.Get(values).Reveal()
}

// DeadLetters is the topic of what the workers cannot handle.
func DeadLetters(values *config.Values) string { return daemon.TopicDefault.Get(values) + "-dead" }
