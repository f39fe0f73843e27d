package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/retention"
)

// relayKeys are the keys of relay.Settings by field, because the relay's errors begin with the field.
var relayKeys = map[string]config.AnyKey{
	"Batch": relayBatch, "MaxInFlight": relayMaxInFlight, "MaxBytes": relayMaxBytes, "Concurrency": relayConcurrency,
	"Poll":  relayPoll,
	"Lease": relayLease, "Deadline": relayDeadline, "Drain": relayDrain, "MaxAttempts": relayMaxAttempts,
	"BaseDelay": relayBaseDelay,
	"MaxDelay":  relayMaxDelay,
}

// retentionKeys are those of retention.Config.
var retentionKeys = map[string]config.AnyKey{
	"Published": retentionPublished, "Dead": retentionDead, "Dedupe": retentionDedupe, "Every": retentionEvery,
	"Batch": retentionBatch, "MaxStep": retentionEvery,
}

// topicKeys are those that go by topic, and what belongs to them.
func (p Program) topicKeys() map[string]config.AnyKey {
	return map[string]config.AnyKey{
		"Format": messageFormat, "Formats": messageFormats, "Source": messageSource, "Publishers": p.brokersKey(),
	}
}

func formatNames() (names []string) {
	for _, format := range publish.Formats() {
		names = append(names, string(format))
	}
	return names
}

// setFormats gives the relay its formats.
func setFormats(values *config.Values, settings *relay.Config) {
	settings.Format, settings.Source = publish.Format(messageFormat.Get(values)), messageSource.Get(values)
	settings.Formats = map[string]publish.Format{}
	for topic, format := range messageFormats.Get(values) {
		settings.Formats[topic] = publish.Format(format)
	}
}

// nobody stands for the publisher where only settings are checked.
var nobody = publish.PublisherFunc(func(context.Context, *publish.Message) error { return publish.ErrNotSent })

// checkTopics asks the relay what it would refuse about the formats and brokers of topics. It needs the registry, which
// knows the topics.
func (p Program) checkTopics(values *config.Values, found *loaded) []config.Problem {
	if found.registry == nil {
		return nil
	}
	settings := relay.Config{
		Database: "checked elsewhere", Registry: found.registry, Publisher: nobody,
		Publishers: map[string]publish.Publisher{},
	}
	for topic := range found.others {
		settings.Publishers[topic] = nobody
	}
	setFormats(values, &settings)
	_, err := relay.New(settings)
	return fieldProblems(values, err, p.topicKeys())
}

func relaySettings(values *config.Values) relay.Settings {
	return relay.Settings{
		Batch: relayBatch.Get(values), MaxInFlight: relayMaxInFlight.Get(values), MaxBytes: relayMaxBytes.Get(values),
		Concurrency: relayConcurrency.Get(values),
		Poll:        relayPoll.Get(values), Lease: relayLease.Get(values), Deadline: relayDeadline.Get(values),
		Drain:       relayDrain.Get(values),
		MaxAttempts: relayMaxAttempts.Get(values), BaseDelay: relayBaseDelay.Get(values), MaxDelay: relayMaxDelay.Get(values),
		UnknownTypeMaxAge: relayUnknownAge.Get(values), FailoverWindow: relayFailover.Get(values),
	}
}

func retentionConfig(values *config.Values) retention.Config {
	confirmed, _ := time.Parse(time.RFC3339, retentionConfirmed.Get(values)) // checked with the key
	return retention.Config{
		Schema: databaseSchema.Get(values), Published: forEver(retentionPublished.Get(values)),
		Dead:   forEver(retentionDead.Get(values)),
		Dedupe: forEver(retentionDedupe.Get(values)), Every: retentionEvery.Get(values), Batch: retentionBatch.Get(values),
		Confirmed: confirmed,
	}
}

// forEver is how the relay says it.
func forEver(window time.Duration) time.Duration {
	if window == 0 {
		return -1
	}
	return window
}

// checkSettings asks the relay and retention what they would refuse. A zero is asked about here: to them it is
// the default.
func checkSettings(values *config.Values) (problems []config.Problem) {
	for _, key := range []config.Key[int]{relayBatch, relayMaxBytes, relayConcurrency, relayMaxAttempts, retentionBatch} {
		if key.Get(values) == 0 {
			problems = append(problems, values.Problem(key, "must not be 0"))
		}
	}
	for _, key := range []config.Key[time.Duration]{
		relayPoll, relayLease, relayDrain, relayBaseDelay, relayMaxDelay, relayUnknownAge, relayFailover,
	} {
		if key.Get(values) == 0 {
			problems = append(problems, values.Problem(key, "must not be 0"))
		}
	}
	nothing, _ := outbox.NewRegistry()
	_, err := relay.New(relay.Config{
		Settings: relaySettings(values), Database: "checked elsewhere", Registry: nothing, Publisher: nobody,
	})
	problems = append(problems, fieldProblems(values, err, relayKeys)...)
	if retentionEvery.Get(values) == 0 {
		return problems
	}
	_, err = retention.New(nil, retentionConfig(values))
	return append(problems, fieldProblems(values, err, retentionKeys)...)
}

// fieldProblems makes problems of keys of an error that joins several, each of which begins with its field.
func fieldProblems(values *config.Values, err error, keys map[string]config.AnyKey) (problems []config.Problem) {
	if err == nil {
		return nil
	}
	joined, several := errors.Unwrap(err).(interface{ Unwrap() []error })
	if !several {
		return []config.Problem{{Text: err.Error()}}
	}
	for _, one := range joined.Unwrap() {
		field, text, _ := strings.Cut(one.Error(), ": ")
		first, _, _ := strings.Cut(strings.ReplaceAll(field, " and ", ", "), ", ")
		if key, known := keys[first]; known {
			problems = append(problems, values.Problem(key, "%s", text))
		} else {
			problems = append(problems, config.Problem{Text: one.Error()})
		}
	}
	return problems
}
