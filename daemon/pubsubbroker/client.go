package pubsubbroker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials/impersonate"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
)

const (
	// patience is how long the client waits between two tries to connect, at most. gRPC's own two minutes would add to
	// every outage.
	patience = 10 * time.Second
	// quiet is after how long of silence a connection with requests is asked whether it lives, and silence is how long
	// it may take to answer, or to take what is sent. The library's five minutes would fail a part of all requests for
	// as long when one connection of several leads nowhere.
	quiet, silence = 30 * time.Second, 10 * time.Second
)

func clientOptions(ctx context.Context, values *config.Values, options daemon.Options,
	timeout time.Duration,
) ([]option.ClientOption, error) {
	waits := backoff.DefaultConfig
	waits.MaxDelay = patience
	dial := []option.ClientOption{
		// Below the timeout of a request, so that one that meets a server which does not answer says so.
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: waits, MinConnectTimeout: min(patience, timeout/2),
		})),
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: quiet, Timeout: silence})),
		option.WithGRPCConnectionPool(connections.Get(values)),
	}
	if options.UserAgent != "" {
		dial = append(dial, option.WithUserAgent(options.UserAgent))
	}
	if address := endpoint.Get(values); address != "" {
		dial = append(dial, option.WithEndpoint(address))
		if options.Insecure || loopback.Is(hostOf(address)) {
			return append(dial, option.WithoutAuthentication(),
				option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))), nil
		}
	}
	who, err := newIdentity(ctx, values)
	if err != nil {
		return nil, err
	}
	if who.credentials != nil {
		dial = append(dial, option.WithAuthCredentials(who.credentials))
	}
	if who.universe != "" {
		dial = append(dial, option.WithUniverseDomain(who.universe))
	}
	if billed := quotaProject.Get(values); billed != "" {
		dial = append(dial, option.WithQuotaProject(billed))
	}
	return dial, nil
}

// identity is as whom the client speaks, and to which cloud.
type identity struct {
	credentials *auth.Credentials // nil: those of where it runs
	universe    string            // empty: Google's own
}

func newIdentity(ctx context.Context, values *config.Values) (identity, error) {
	who := identity{universe: universeDomain.Get(values)}
	if file := credentialsFile.Get(values); file != "" {
		who.credentials = newCredentials(file)
		if who.universe == "" {
			who.universe, _ = who.credentials.UniverseDomain(ctx) // a file that cannot be read says so with every token
		}
	}
	target := impersonated.Get(values)
	if target == "" {
		return who, nil
	}
	as, err := impersonate.NewCredentials(&impersonate.CredentialsOptions{
		TargetPrincipal: target, Scopes: []string{scope}, Credentials: who.credentials, UniverseDomain: who.universe,
	})
	if err != nil {
		return who, fmt.Errorf("pubsub.impersonate: %w", err)
	}
	who.credentials = as
	return who, nil
}

// ready looks at a connection. One that is idle, as after a while without events, is asked to connect.
func ready(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		switch state := conn.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errors.New("not connected")
		case connectivity.Idle, connectivity.Connecting:
			conn.Connect()
			if !conn.WaitForStateChange(ctx, state) {
				return errors.New("not connected yet")
			}
		}
	}
}
