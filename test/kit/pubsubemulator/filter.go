package pubsubemulator

import (
	"context"
	"fmt"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
)

// filters evaluates subscriptions' filters with pstest, which knows their language and tells nobody: a message goes
// through a pstest of its own, to a subscription with the filter, and comes out or does not.
type filters struct {
	inner *pstest.Server    // nil until there is a filter
	subs  map[string]string // by the filter's text
}

// passes tells whether a message with these attributes passes a filter that pstest has accepted before.
func (f *filters) passes(filter string, attributes map[string]string) (bool, error) {
	if filter == "" {
		return true, nil
	}
	ctx := context.Background()
	const topic = "projects/filters/topics/t"
	sub, err := f.sub(ctx, topic, filter)
	if err != nil {
		return false, err
	}
	defer f.inner.ClearMessages()
	_, err = f.inner.GServer.Publish(ctx, &pb.PublishRequest{
		Topic: topic, Messages: []*pb.PubsubMessage{{Data: []byte("x"), Attributes: attributes}},
	})
	if err != nil {
		return false, err
	}
	//nolint:staticcheck // Deprecated for users of the service; here it keeps pstest from sleeping.
	res, err := f.inner.GServer.Pull(ctx, &pb.PullRequest{Subscription: sub, MaxMessages: 1, ReturnImmediately: true})
	return len(res.GetReceivedMessages()) > 0, err
}

// sub returns the subscription for a filter.
func (f *filters) sub(ctx context.Context, topic, filter string) (string, error) {
	if name := f.subs[filter]; name != "" {
		return name, nil
	}
	if f.inner == nil {
		inner, err := newInner()
		if err != nil {
			return "", err
		}
		f.inner, f.subs = inner, map[string]string{}
		if _, err := inner.GServer.CreateTopic(ctx, &pb.Topic{Name: topic}); err != nil {
			return "", err
		}
	}
	name := fmt.Sprintf("projects/filters/subscriptions/s%d", len(f.subs))
	_, err := f.inner.GServer.CreateSubscription(ctx, &pb.Subscription{Name: name, Topic: topic, Filter: filter})
	if err != nil {
		return "", err
	}
	f.subs[filter] = name
	return name, nil
}

func (f *filters) close() {
	if f.inner != nil {
		_ = f.inner.Close()
		f.inner.Wait()
	}
}
