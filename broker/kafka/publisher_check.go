package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Finding is something about a topic or a group that an operator should know before events come.
type Finding struct {
	// Level is slog.LevelWarn for what loses events or keeps them away, slog.LevelInfo for what is good to know.
	Level slog.Level
	// Code names the finding for alerts.
	Code string
	// Text says what it is and what to do.
	Text string
}

// The codes of the findings of [Publisher.Check].
const (
	// TopicInvalid: no topic can have this name. Events wait.
	TopicInvalid = "topic_invalid"
	// TopicMissing: the topic does not exist. Events wait.
	TopicMissing = "topic_missing"
	// TopicForbidden: the publisher may not write to the topic. Events wait.
	TopicForbidden = "topic_forbidden"
	// OneReplica: what a broker has acknowledged goes with its disk.
	OneReplica = "one_replica"
	// OneInSync: an acknowledgement may come from one broker alone.
	OneInSync = "one_in_sync"
	// UncleanElection: a replica that misses acknowledged messages may become the leader.
	UncleanElection = "unclean_election"
	// Compacted: of the events of one aggregate the topic keeps the last one.
	Compacted = "compacted"
	// SettingsUnknown: the topic's settings may not be read.
	SettingsUnknown = "settings_unknown"
)

// noOperations is what a cluster says that does not tell what a client may do.
const noOperations = -2147483648

// Check asks the cluster about topics before events come to them: whether they exist, whether this publisher may
// write to them, and whether what is acknowledged survives the loss of a broker. It publishes nothing. The findings
// are in the order of the topics, which are named as events name them. An error means that it could not be asked.
//
// Reading a topic's settings needs the right DescribeConfigs on it.
func (p *Publisher) Check(ctx context.Context, topics []string) ([]Finding, error) {
	var all []Finding
	for _, topic := range topics {
		found, err := p.checkTopic(ctx, p.config.Prefix+topic)
		if err != nil {
			return all, fmt.Errorf("kafka: the topic %s: %w", p.config.Prefix+topic, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func (p *Publisher) checkTopic(ctx context.Context, name string) ([]Finding, error) {
	if invalid := CheckTopic(name); invalid != nil {
		return []Finding{{slog.LevelWarn, TopicInvalid, invalid.Error()}}, nil //nolint:nilerr // it is the finding
	}
	about := kmsg.NewMetadataRequestTopic()
	about.Topic = &name
	question := kmsg.NewPtrMetadataRequest()
	question.Topics, question.IncludeTopicAuthorizedOperations = append(question.Topics, about), true
	answer, err := question.RequestWith(ctx, p.client)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says about which topic
	}
	if len(answer.Topics) != 1 {
		return nil, errNoAnswer
	}
	said := answer.Topics[0]
	switch err := errorOf(said.ErrorCode, nil); {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return []Finding{{slog.LevelWarn, TopicMissing, fmt.Sprintf("the topic %s does not exist, and its events wait: "+
			"make it, with three replicas and min.insync.replicas=2", name)}}, nil
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return []Finding{forbidden(name)}, nil
	case err != nil:
		return nil, err
	}
	var found []Finding
	if said.AuthorizedOperations != noOperations && said.AuthorizedOperations&(1<<kmsg.ACLOperationWrite) == 0 {
		found = append(found, forbidden(name))
	}
	return append(found, p.checkSafety(ctx, name, &said)...), nil
}

func forbidden(name string) Finding {
	return Finding{slog.LevelWarn, TopicForbidden, fmt.Sprintf(
		"the publisher may not write to the topic %s, and its events wait: allow it Describe and Write", name)}
}

// checkSafety says what an acknowledgement of this topic is not good for.
func (p *Publisher) checkSafety(ctx context.Context, name string, said *kmsg.MetadataResponseTopic) (found []Finding) {
	replicas := 1 << 10
	for _, partition := range said.Partitions {
		replicas = min(replicas, len(partition.Replicas))
	}
	add := func(is bool, level slog.Level, code, text string) {
		if is {
			found = append(found, Finding{level, code, fmt.Sprintf("the topic %s: %s", name, text)})
		}
	}
	add(replicas == 1, slog.LevelWarn, OneReplica,
		"it has one replica: what is acknowledged goes with one disk; give it three")
	settings, err := readSettings(ctx, p.client, name)
	if err != nil {
		add(true, slog.LevelInfo, SettingsUnknown,
			"its settings may not be read (allow DescribeConfigs): how large a message may be shows when one is refused")
		return found
	}
	add(replicas > 1 && settings.minInSync == 1, slog.LevelWarn, OneInSync,
		"min.insync.replicas is 1, so one broker may acknowledge alone and then be lost: set 2")
	add(settings.unclean, slog.LevelWarn, UncleanElection,
		"unclean.leader.election.enable is on, so acknowledged events can vanish: turn it off")
	add(settings.compacted, slog.LevelInfo, Compacted,
		"it is compacted: of the events of one aggregate, which share a key, only the last one is kept")
	return found
}
