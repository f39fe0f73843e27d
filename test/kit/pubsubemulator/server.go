package pubsubemulator

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"cloud.google.com/go/iam/apiv1/iampb"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// maxRequest lets through what the service lets through: ten megabytes of messages, and then some.
	maxRequest = 20 << 20
	// stopPatience is how long Close waits for calls under way before it cuts them.
	stopPatience = 2 * time.Second
	// slowClient bounds how long a client of the fault port may take for a request.
	slowClient = 10 * time.Second
)

// Server is a running emulator.
type Server struct {
	broker *broker
	faults *faultTable
	late   *lateCalls

	listener      *connTable
	faultListener net.Listener
	grpc          *grpc.Server
	http          *http.Server
	serving       sync.WaitGroup

	closeOnce sync.Once
	closeErr  error
}

// Start replays the journal in cfg.Dir and serves until Close.
func Start(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b, err := restore(cfg)
	if err != nil {
		return nil, fmt.Errorf("pubsubemulator: %w", err)
	}
	s := &Server{broker: b, faults: &faultTable{fired: map[string]int{}}, late: &lateCalls{}}
	if err := s.listen(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("pubsubemulator: %w", err), b.close())
	}
	s.serve(cfg)
	return s, nil
}

// restore makes a broker of what the journal holds.
func restore(cfg Config) (*broker, error) {
	j, past, err := openJournal(cfg.Dir, cfg.Fsync)
	if err != nil {
		return nil, err
	}
	b, err := newBroker(j, cfg.LongestBackoff)
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	if err := b.replay(cfg.Dir, past); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (s *Server) listen(cfg Config) error {
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return err
	}
	s.listener = newConnTable(l)
	if s.faultListener, err = net.Listen("tcp", cfg.FaultAddr); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

func (s *Server) serve(cfg Config) {
	injector := &faultInjector{
		table: s.faults, conns: s.listener, late: s.late, token: cfg.Token, done: s.broker.done,
	}
	secured := insecure.NewCredentials()
	if cfg.TLS != nil {
		secured = credentials.NewTLS(cfg.TLS)
	}
	s.grpc = grpc.NewServer(grpc.Creds(secured),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxRequest),
		grpc.UnaryInterceptor(injector.unary), grpc.StreamInterceptor(injector.stream),
		grpc.WaitForHandlers(true), // the broker is closed behind the last of them
	)
	pb.RegisterPublisherServer(s.grpc, s.broker)
	pb.RegisterSubscriberServer(s.grpc, s.broker)
	iampb.RegisterIAMPolicyServer(s.grpc, iam{broker: s.broker})
	s.http = &http.Server{Handler: s.faultPort(), ReadTimeout: slowClient, WriteTimeout: slowClient}
	s.serving.Go(func() {
		if err := s.grpc.Serve(s.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			cfg.Logger.Error("the Pub/Sub port has stopped", "error", err)
		}
	})
	s.serving.Go(func() {
		if err := s.http.Serve(s.faultListener); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the fault port has stopped", "error", err)
		}
	})
}

// Addr is where the Pub/Sub service listens: the value for PUBSUB_EMULATOR_HOST.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// FaultAddr is where the fault port listens.
func (s *Server) FaultAddr() string { return s.faultListener.Addr().String() }

// Inject adds a fault behind those that there are.
func (s *Server) Inject(f Fault) error { return s.faults.add(false, f) }

// Faults lists the faults in the order in which they were added, worn-off ones included.
func (s *Server) Faults() []FaultStatus { return s.faults.list() }

// ClearFaults removes all faults. Calls that one of them has caught stay caught.
func (s *Server) ClearFaults() { _ = s.faults.add(true) }

// Release handles the calls that a KindLate holds now, in the order in which they came, and returns how many they were.
// A caller that has not gone yet gets its answer.
func (s *Server) Release() int { return s.late.release() }

// Stats tells what the emulator has done.
func (s *Server) Stats() Stats {
	s.faults.mu.Lock()
	faulted := maps.Clone(s.faults.fired)
	s.faults.mu.Unlock()
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := 0
	for _, t := range b.topics {
		for _, sub := range t.subs {
			if sub.proto.GetFilter() == "" {
				waiting = max(waiting, sub.unacknowledged)
			}
		}
	}
	return Stats{
		Accepted: b.accepted, Replayed: b.replayed, Faulted: faulted,
		Topics: len(b.topics), Subscriptions: len(b.subs), Waiting: waiting,
		Held: s.late.count(),
	}
}

// Close stops the emulator. Streams end with UNAVAILABLE, calls under way get a moment to finish, and
// the journal is ready for the next Start.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.broker.stop()
		cut := time.AfterFunc(stopPatience, s.grpc.Stop)
		s.grpc.GracefulStop()
		cut.Stop()
		httpErr := s.http.Close()
		s.serving.Wait()
		s.closeErr = errors.Join(httpErr, s.broker.close())
	})
	return s.closeErr
}
