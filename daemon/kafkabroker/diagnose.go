package kafkabroker

import (
	"context"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// answerWithin bounds what is asked about one topic.
const answerWithin = 15 * time.Second

// findingCodes are those of the check, as docs/operate/doctor.md calls them.
var findingCodes = map[string]string{
	kafka.TopicInvalid: "topic_invalid", kafka.TopicMissing: "topic_missing", kafka.TopicForbidden: "topic_forbidden",
	kafka.OneReplica: "topic_one_replica", kafka.OneInSync: "topic_one_in_sync",
	kafka.UncleanElection: "topic_unclean_election", kafka.Compacted: "topic_compacted",
	kafka.SettingsUnknown: "topic_settings_unknown",
}

// diagnose asks the cluster about each topic: whether it is there, whether this publisher may write to it, and whether
// what is acknowledged survives the loss of a broker.
func diagnose(ctx context.Context, values *config.Values, options daemon.Options) (found []daemon.Finding) {
	unreachable := func(err error) []daemon.Finding {
		return append(found, daemon.Finding{
			Code: "broker_unreachable", Text: "Kafka: " + err.Error(),
			Advice: "is it up, do kafka.brokers lead to it, and are user, password and certificates right?",
		})
	}
	publisher, err := kafka.NewPublisher(cluster(ctx, values, options), settings(values, options.Deadline))
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = publisher.Close() }()
	for _, topic := range options.Topics {
		asking, cancel := context.WithTimeout(ctx, answerWithin)
		findings, err := publisher.Check(asking, []string{topic})
		cancel()
		for _, finding := range findings {
			found = append(found, describe(finding, topic, values))
		}
		if err != nil {
			return unreachable(err) // it is the same for the others
		}
	}
	return found
}

// describe adds what ends a finding.
func describe(finding kafka.Finding, topic string, values *config.Values) daemon.Finding {
	told := daemon.Finding{Code: findingCodes[finding.Code], Text: finding.Text, Advice: "the text says what to do"}
	servers := " --bootstrap-server '" + strings.Join(brokers.Get(values), ",") + "'"
	switch finding.Code {
	case kafka.TopicMissing:
		told.Fix = "kafka-topics.sh" + servers + " --create --topic '" + topic +
			"' --partitions 12 --replication-factor 3 --config min.insync.replicas=2"
	case kafka.OneInSync:
		told.Fix = "kafka-configs.sh" + servers + " --alter --topic '" + topic + "' --add-config min.insync.replicas=2"
	case kafka.UncleanElection:
		told.Fix = "kafka-configs.sh" + servers + " --alter --topic '" + topic +
			"' --add-config unclean.leader.election.enable=false"
	}
	return told
}
