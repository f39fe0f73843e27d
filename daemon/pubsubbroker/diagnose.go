package pubsubbroker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// answerWithin bounds what is asked about one topic: there may be hundreds.
const answerWithin = 15 * time.Second

// findingCodes are those of the check, as docs/operate/doctor.md calls them.
var findingCodes = map[string]string{
	googlepubsub.TopicInvalid: "topic_invalid", googlepubsub.TopicMissing: "topic_missing",
	googlepubsub.TopicForbidden: "topic_forbidden", googlepubsub.NoSubscription: "topic_no_subscription",
	googlepubsub.SubscriptionsUnknown: "topic_unknown",
}

// diagnose asks Pub/Sub about each topic: whether it is there, whether this publisher may publish to it, whether
// anybody subscribes.
func diagnose(ctx context.Context, values *config.Values, options daemon.Options) (found []daemon.Finding) {
	unreachable := func(err error) []daemon.Finding {
		return append(found, daemon.Finding{
			Code: "broker_unreachable", Text: "Pub/Sub: " + err.Error(),
			Advice: "are pubsub.project, pubsub.endpoint and the credentials right, and does the network let it through?",
		})
	}
	settings, err := publisherConfig(values, options.Deadline)
	if err != nil {
		return unreachable(err)
	}
	dial, err := clientOptions(ctx, values, options, settings.Timeout)
	if err != nil {
		return unreachable(err)
	}
	client, err := pubsub.NewClient(ctx, project.Get(values), dial...)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = client.Close() }()
	publisher, err := googlepubsub.NewPublisher(client, settings)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = within(longestClose, publisher.Close) }()
	for _, topic := range options.Topics {
		asking, cancel := context.WithTimeout(ctx, answerWithin)
		findings, err := publisher.Check(asking, []string{topic})
		late := asking.Err() != nil
		cancel()
		for _, finding := range findings {
			if finding.Level >= slog.LevelInfo {
				found = append(found, describe(finding, topic, project.Get(values)))
			}
		}
		if err != nil {
			if late {
				err = errors.Join(errors.New("no answer in time"), err)
			}
			return unreachable(err) // it is the same for the others
		}
	}
	return found
}

// describe adds what ends a finding.
func describe(finding googlepubsub.Finding, topic, project string) daemon.Finding {
	told := daemon.Finding{Code: findingCodes[finding.Code], Text: finding.Text, Advice: "the text says what to do"}
	switch finding.Code {
	case googlepubsub.TopicMissing:
		told.Fix = "gcloud pubsub topics create '" + topic + "' --project '" + project + "'"
	case googlepubsub.NoSubscription:
		told.Fix = "gcloud pubsub subscriptions create '" + topic + "-all' --topic '" + topic +
			"' --enable-message-ordering --project '" + project + "'"
	}
	return told
}
