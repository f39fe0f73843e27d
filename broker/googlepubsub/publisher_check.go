package googlepubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The codes of the findings of [Publisher.Check].
const (
	// TopicInvalid: no topic can have this name. Events wait.
	TopicInvalid = "topic_invalid"
	// TopicMissing: the topic does not exist. Events wait.
	TopicMissing = "topic_missing"
	// TopicForbidden: the client may not publish to the topic. Events wait.
	TopicForbidden = "topic_forbidden"
	// NoSubscription: nobody subscribes to the topic, and Pub/Sub throws away what is published to nobody.
	NoSubscription = "no_subscription"
	// SubscriptionsUnknown: whether somebody subscribes may not be asked.
	SubscriptionsUnknown = "subscriptions_unknown"
)

// publishPermission is what a publisher needs of a topic.
const publishPermission = "pubsub.topics.publish"

// checksAtATime bounds how many topics are asked about at the same time.
const checksAtATime = 8

// Check asks Pub/Sub about topics before events come to them: whether they exist, whether this client may publish to
// them, and whether anybody subscribes. It publishes nothing. The findings are in the order of the topics. An error
// means that it could not be asked, for instance in an outage, or without valid credentials.
//
// Asking for the right to publish needs no other right; asking who subscribes needs pubsub.topics.get.
func (p *Publisher) Check(ctx context.Context, topics []string) ([]Finding, error) {
	found, errs := make([][]Finding, len(topics)), make([]error, len(topics))
	var asking sync.WaitGroup
	places := make(chan struct{}, checksAtATime)
	for i, topic := range topics {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			found[i], errs[i] = p.checkTopic(ctx, topic)
		})
	}
	asking.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

func (p *Publisher) checkTopic(ctx context.Context, topic string) ([]Finding, error) {
	if invalid := checkTopicName(topic); invalid != nil {
		return []Finding{{slog.LevelWarn, TopicInvalid, invalid.Error()}}, nil //nolint:nilerr // it is the finding
	}
	name := p.client.Publisher(topic).String()
	may, err := p.mayPublish(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("googlepubsub: the topic %s: %w", name, err)
	}
	_, err = p.client.TopicAdminClient.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{
		Topic: name, PageSize: 1,
	}).Next()
	if errors.Is(err, iterator.Done) { // as an emulator says also of a topic that is not there
		_, missing := p.client.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: name})
		if status.Code(missing) == codes.NotFound {
			err = missing
		}
	}
	switch code := status.Code(err); {
	case code == codes.NotFound:
		return []Finding{{
			slog.LevelWarn, TopicMissing,
			fmt.Sprintf("the topic %s does not exist, and its events wait: create it, and a subscription", name),
		}}, nil
	case !may:
		return []Finding{{
			slog.LevelWarn, TopicForbidden,
			fmt.Sprintf("the topic %s does not exist, or its events wait because %s is missing: grant roles/pubsub.publisher "+
				"on it", name, publishPermission),
		}}, nil
	case errors.Is(err, iterator.Done):
		return []Finding{{
			slog.LevelWarn, NoSubscription,
			fmt.Sprintf("nobody subscribes to the topic %s: what is published to nobody is lost; create a subscription", name),
		}}, nil
	case err == nil:
		return nil, nil
	case code == codes.PermissionDenied || code == codes.Unimplemented:
		return []Finding{{
			slog.LevelInfo, SubscriptionsUnknown,
			fmt.Sprintf("whether anybody subscribes to the topic %s is not known (%s: grant pubsub.topics.get to be told): "+
				"what is published to nobody is lost", name, code),
		}}, nil
	default:
		return nil, fmt.Errorf("googlepubsub: the topic %s: %w", name, err)
	}
}

// mayPublish asks whether the client has the right. Of a topic that does not exist nobody has it, or that is the
// answer. An emulator may not know of rights; then everybody has them.
func (p *Publisher) mayPublish(ctx context.Context, name string) (bool, error) {
	answer, err := p.client.TopicAdminClient.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{
		Resource: name, Permissions: []string{publishPermission},
	})
	switch status.Code(err) {
	case codes.OK:
		return slices.Contains(answer.GetPermissions(), publishPermission), nil
	case codes.NotFound, codes.PermissionDenied:
		return false, nil
	case codes.Unimplemented:
		return true, nil
	default:
		return false, err //nolint:wrapcheck // the caller names the topic
	}
}
