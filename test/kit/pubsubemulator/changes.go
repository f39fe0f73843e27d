package pubsubemulator

import (
	"context"
	"fmt"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// operation is a call that changes topics or subscriptions. A call from the network and a line of the
// journal both end in apply, so that a replay cannot differ from what it replays.
type operation struct {
	newRequest func() proto.Message
	apply      func(context.Context, *broker, proto.Message) (proto.Message, error)
}

// errNoUpdate answers an update on which pstest would panic.
var errNoUpdate = status.Error(codes.InvalidArgument, "an update needs both the new values and an update_mask")

// operations lists every call that is journalled, by its method.
var operations = map[string]operation{
	"CreateTopic":        newOperation((*broker).createTopic),
	"UpdateTopic":        newOperation((*broker).updateTopic),
	"DeleteTopic":        newOperation((*broker).deleteTopic),
	"CreateSubscription": newOperation((*broker).createSubscription),
	"UpdateSubscription": newOperation((*broker).updateSubscription),
	"DeleteSubscription": newOperation((*broker).deleteSubscription),
	"DetachSubscription": newOperation((*broker).detachSubscription),
}

// newOperation erases the types of apply.
func newOperation[Req, Res proto.Message](apply func(*broker, context.Context, Req) (Res, error)) operation {
	return operation{
		newRequest: func() proto.Message {
			var req Req
			return req.ProtoReflect().New().Interface()
		},
		apply: func(ctx context.Context, b *broker, req proto.Message) (proto.Message, error) {
			return apply(b, ctx, req.(Req))
		},
	}
}

// perform applies a call from the network and journals it. It applies first, because pstest knows
// whether the call is valid; a change that is lost in between was never confirmed.
func perform[Res proto.Message](ctx context.Context, b *broker, method string, req proto.Message) (Res, error) {
	var none Res
	b.mu.Lock()
	defer b.mu.Unlock()
	res, err := operations[method].apply(ctx, b, proto.Clone(req))
	if err != nil {
		return none, err
	}
	if err := b.journal.appendChange(method, req); err != nil {
		b.journal.poison(err)
		return none, status.Errorf(codes.Internal, "%s was not journalled: %v", method, err)
	}
	return proto.Clone(res).(Res), nil
}

// reapply applies a line of the journal.
func (b *broker) reapply(ctx context.Context, c change) error {
	op, ok := operations[c.Method]
	if !ok {
		return fmt.Errorf("unknown method %q: the journal is of a newer version", c.Method)
	}
	req := op.newRequest()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(c.Request, req); err != nil {
		return err
	}
	_, err := op.apply(ctx, b, req)
	return err
}

func (b *broker) createTopic(ctx context.Context, req *pb.Topic) (*pb.Topic, error) {
	res, err := b.inner.GServer.CreateTopic(ctx, req)
	if err == nil {
		b.topics[req.GetName()] = &topic{subs: map[string]*subscription{}}
	}
	return res, err
}

func (b *broker) updateTopic(ctx context.Context, req *pb.UpdateTopicRequest) (*pb.Topic, error) {
	if req.GetTopic() == nil || req.GetUpdateMask() == nil {
		return nil, errNoUpdate
	}
	return b.inner.GServer.UpdateTopic(ctx, req)
}

// deleteTopic leaves the subscriptions with what they have, as the service does.
func (b *broker) deleteTopic(ctx context.Context, req *pb.DeleteTopicRequest) (proto.Message, error) {
	res, err := b.inner.GServer.DeleteTopic(ctx, req)
	if err == nil {
		delete(b.topics, req.GetTopic())
	}
	return res, err
}

func (b *broker) createSubscription(ctx context.Context, req *pb.Subscription) (*pb.Subscription, error) {
	res, err := b.inner.GServer.CreateSubscription(ctx, req)
	if err != nil {
		return nil, err
	}
	sub := newSubscription(res, b.topics[req.GetTopic()])
	b.subs[req.GetName()] = sub
	sub.topic.subs[req.GetName()] = sub
	return res, nil
}

func (b *broker) updateSubscription(ctx context.Context, req *pb.UpdateSubscriptionRequest) (*pb.Subscription, error) {
	if req.GetSubscription() == nil || req.GetUpdateMask() == nil {
		return nil, errNoUpdate
	}
	res, err := b.inner.GServer.UpdateSubscription(ctx, req)
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (b *broker) deleteSubscription(ctx context.Context, req *pb.DeleteSubscriptionRequest) (proto.Message, error) {
	res, err := b.inner.GServer.DeleteSubscription(ctx, req)
	if err == nil {
		sub := b.subs[req.GetSubscription()]
		delete(b.subs, req.GetSubscription())
		delete(sub.topic.subs, req.GetSubscription())
		sub.wake() // its streams find out that it is gone
	}
	return res, err
}

func (b *broker) detachSubscription(ctx context.Context, req *pb.DetachSubscriptionRequest) (proto.Message, error) {
	res, err := b.inner.GServer.DetachSubscription(ctx, req)
	if err == nil {
		sub := b.subs[req.GetSubscription()]
		delete(sub.topic.subs, req.GetSubscription())
		sub.proto.Detached = true // pstest does not say so
		sub.clear()
		sub.wake() // its streams find out
	}
	return res, err
}
