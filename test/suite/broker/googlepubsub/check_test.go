package googlepubsub_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/iam/apiv1/iampb"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
)

// rights answers who asks for rights, in the broker's place.
type rights struct {
	forbidden string // a part of the name of topics to which nobody may publish
	code      codes.Code
}

func (r *rights) dialOption() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if request, is := req.(*iampb.TestIamPermissionsRequest); is {
			answer := reply.(*iampb.TestIamPermissionsResponse)
			if !strings.Contains(request.GetResource(), r.forbidden) {
				answer.Permissions = request.GetPermissions()
			}
			if r.code != codes.OK {
				return status.Error(r.code, "said the service")
			}
			return nil
		}
		if request, is := req.(*pb.ListTopicSubscriptionsRequest); is && strings.Contains(request.GetTopic(), r.forbidden) {
			return status.Error(codes.PermissionDenied, "said the service")
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
}

func codesOf(findings []googlepubsub.Finding) []string {
	var all []string
	for _, finding := range findings {
		all = append(all, finding.Code)
	}
	return all
}

func TestCheckOfTopics(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{}, (&rights{forbidden: "forbidden"}).dialOption())
	for _, id := range []string{"unread", "forbidden"} {
		w.createTopic(t, id)
	}
	_, err := w.client.SubscriptionAdminClient.CreateSubscription(testContext(t), &pb.Subscription{
		Name: "projects/" + project + "/subscriptions/s", Topic: topicName(orders),
	})
	if err != nil {
		t.Fatal(err)
	}
	topics := []string{orders, "unread", "missing", "forbidden", "no topic", topicName("unread")}
	findings, err := w.publisher.Check(testContext(t), topics)
	want := []string{
		googlepubsub.NoSubscription, googlepubsub.TopicMissing, googlepubsub.TopicForbidden, googlepubsub.TopicInvalid,
		googlepubsub.NoSubscription,
	}
	if got := codesOf(findings); err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, %v, want %v", got, err, want)
	}
	if len(w.journal(t)) > 0 {
		t.Error("something was published")
	}
}

// An emulator that knows of no rights is no reason to complain, and who cannot be asked is no finding.
func TestCheckThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	for code, asked := range map[codes.Code]bool{
		codes.Unimplemented: true, codes.Unauthenticated: false, codes.Unavailable: false,
	} {
		w := newEnv(t, googlepubsub.PublisherConfig{}, (&rights{forbidden: "none", code: code}).dialOption())
		findings, err := w.publisher.Check(testContext(t), []string{orders})
		if got := codesOf(findings); (err == nil) != asked || asked && !slices.Equal(got, []string{"no_subscription"}) {
			t.Errorf("%v: found %v, %v", code, got, err)
		}
	}
}
