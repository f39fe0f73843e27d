package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/consumer"
)

// permanentError is one that waiting does not fix.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// CheckConsumer looks at everything that [Consume] needs to be so in the cluster, and says what is not and what to do
// about it. Consume calls it as well; calling it before tells whether the cluster is there. The brokers have until ctx
// ends, and five seconds if ctx has no deadline.
func CheckConsumer(ctx context.Context, cluster Cluster, c *consumer.Consumer, config ConsumeConfig) error {
	config, err := config.withDefaults(c)
	if err = errors.Join(cluster.validate(), err); err != nil {
		return err
	}
	client, err := cluster.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, questionTimeout)
		defer cancel()
	}
	return checkTopics(ctx, client, config)
}

// checkTopics says everything that is wrong with the topics and the rights to them.
func checkTopics(ctx context.Context, client *kgo.Client, config ConsumeConfig) error {
	question := kmsg.NewPtrMetadataRequest()
	question.IncludeTopicAuthorizedOperations = true
	for _, topic := range append(append([]string(nil), config.Topics...), config.DeadLetters) {
		about := kmsg.NewMetadataRequestTopic()
		about.Topic = &topic
		question.Topics = append(question.Topics, about)
	}
	answer, err := question.RequestWith(ctx, client)
	if err != nil && !passes(err) {
		return permanentError{fmt.Errorf("kafka: ask for the topics: %w", err)}
	}
	if err != nil {
		return fmt.Errorf("kafka: ask for the topics: %w", err)
	}
	var problems []error
	for _, said := range answer.Topics {
		if said.Topic == nil {
			continue
		}
		what, need := "", kmsg.ACLOperationRead
		if *said.Topic == config.DeadLetters {
			what, need = " for dead letters", kmsg.ACLOperationWrite
		}
		switch err := errorOf(said.ErrorCode, nil); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			problems = append(problems, permanentError{fmt.Errorf("kafka: there is no topic %s%s: make it, or name another one",
				*said.Topic, what)})
		case errors.Is(err, kerr.TopicAuthorizationFailed), err == nil &&
			said.AuthorizedOperations != noOperations && said.AuthorizedOperations&(1<<need) == 0:
			problems = append(problems, permanentError{fmt.Errorf("kafka: the consumer lacks the right %s on the topic %s%s: "+
				"grant it", need, *said.Topic, what)})
		case err != nil:
			problems = append(problems, fmt.Errorf("kafka: the topic %s: %w", *said.Topic, err))
		}
	}
	return errors.Join(problems...)
}
