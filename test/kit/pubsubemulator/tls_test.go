package pubsubemulator_test

import (
	"context"
	"crypto/tls"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
)

// bearer shows a token, which gRPC does over TLS only.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (b bearer) RequireTransportSecurity() bool { return true }

func TestTLSAndToken(t *testing.T) {
	t.Parallel()
	certificate, pool := pubsubtest.SelfSigned(t)
	server, err := pubsubemulator.Start(pubsubemulator.Config{
		Dir: t.TempDir(), Token: "secret", TLS: &tls.Config{Certificates: []tls.Certificate{certificate}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, server)
	ctx := testContext(t)
	for token, want := range map[string]codes.Code{"secret": codes.OK, "other": codes.Unauthenticated} {
		client, err := pubsub.NewClient(ctx, "p", option.WithEndpoint(server.Addr()), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, ""))),
			option.WithGRPCDialOption(grpc.WithPerRPCCredentials(bearer(token))))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		_, err = client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: topicA})
		if status.Code(err) != want {
			t.Errorf("token %s: got %v, want %v", token, err, want)
		}
	}
}
