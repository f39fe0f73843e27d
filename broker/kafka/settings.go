package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// settings are those of a topic that say what becomes of messages.
type settings struct {
	maxMessageBytes int
	minInSync       int
	unclean         bool // a replica that misses messages may become the leader
	compacted       bool
}

// readSettings reads them. That needs the right DescribeConfigs on the topic.
func readSettings(ctx context.Context, client *kgo.Client, topic string) (found settings, err error) {
	about := kmsg.NewDescribeConfigsRequestResource()
	about.ResourceType, about.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	about.ConfigNames = []string{
		"max.message.bytes", "min.insync.replicas", "unclean.leader.election.enable", "cleanup.policy",
	}
	question := kmsg.NewPtrDescribeConfigsRequest()
	question.Resources = append(question.Resources, about)
	answer, err := question.RequestWith(ctx, client)
	if err != nil {
		return found, fmt.Errorf("kafka: the settings of the topic %s: %w", topic, err)
	}
	for _, resource := range answer.Resources {
		if err := errorOf(resource.ErrorCode, nil); err != nil {
			return found, fmt.Errorf("kafka: the settings of the topic %s: %w", topic, err)
		}
		for _, setting := range resource.Configs {
			if setting.Value == nil {
				continue
			}
			number, _ := strconv.Atoi(*setting.Value)
			switch setting.Name {
			case "max.message.bytes":
				found.maxMessageBytes = number
			case "min.insync.replicas":
				found.minInSync = number
			case "unclean.leader.election.enable":
				found.unclean = *setting.Value == "true"
			case "cleanup.policy":
				found.compacted = *setting.Value != "delete"
			}
		}
	}
	return found, nil
}
