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
	wanted    int           // so many at once open the gate
	gate      chan struct{} // nobody is answered until it is closed
}

func startServer(roundTrip time.Duration) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &server{roundTrip: roundTrip, address: listener.Addr().String(), gate: make(chan struct{})}
	close(s.gate)
	serving := grpc.NewServer()
	pb.RegisterPublisherServer(serving, s)
	var running sync.WaitGroup
	running.Go(func() { _ = serving.Serve(listener) }) // it ends when it is stopped
	s.stop = func() { serving.Stop(); running.Wait() }
	return s, nil
}

// Publish takes a round trip.
func (s *server) Publish(ctx context.Context, request *pb.PublishRequest) (*pb.PublishResponse, error) {
	gate := s.count(1)
	defer s.count(-1)
	select {
	case <-gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timer := time.NewTimer(s.roundTrip)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &pb.PublishResponse{MessageIds: make([]string, len(request.GetMessages()))}, nil
}

func (s *server) count(change int) (gate <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now += change
	if s.most = max(s.most, s.now); s.most == s.wanted {
		s.open()
	}
	return s.gate
}

// open lets all requests go on. The mutex is held.
func (s *server) open() {
	select {
	case <-s.gate:
	default:
		close(s.gate)
	}
}

// gather keeps requests until so many are there, or for so long. However slow the machine is, all that may be under way
// at the same time are.
func (s *server) gather(wanted int, patience time.Duration) (atOnce func() int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.wanted, s.most, s.gate = wanted, 0, make(chan struct{})
	late := time.AfterFunc(patience, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.open()
	})
	return func() int {
		late.Stop()
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.wanted = 0
		s.open()
		return s.most
	}
}
