package pubsub

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
)

// server takes whatever is published, a round trip later.
type server struct {
	pb.UnimplementedPublisherServer
	roundTrip time.Duration
	address   string
	stop      func()

	mutex     sync.Mutex
	now, most int
}

func startServer(roundTrip time.Duration) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &server{roundTrip: roundTrip, address: listener.Addr().String()}
	serving := grpc.NewServer()
	pb.RegisterPublisherServer(serving, s)
	var running sync.WaitGroup
	running.Go(func() { _ = serving.Serve(listener) }) // it ends when it is stopped
	s.stop = func() { serving.Stop(); running.Wait() }
	return s, nil
}

// Publish takes a round trip.
func (s *server) Publish(ctx context.Context, request *pb.PublishRequest) (*pb.PublishResponse, error) {
	s.count(1)
	defer s.count(-1)
	timer := time.NewTimer(s.roundTrip)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &pb.PublishResponse{MessageIds: make([]string, len(request.GetMessages()))}, nil
}

func (s *server) count(change int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now += change
	s.most = max(s.most, s.now)
}

// atOnce is how many requests were there at the same time since it was last asked.
func (s *server) atOnce() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	most := s.most
	s.most = s.now
	return most
}
