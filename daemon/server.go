package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// server answers the probes.
type server struct {
	http  *http.Server
	ended chan struct{}
}

// serve begins to answer, or says why it cannot. Without an address there is nobody to answer.
func (p *publisher) serve(ctx context.Context, probes *probes) (*server, error) {
	address := httpListen.Get(p.values)
	if address == "" {
		return nil, nil //nolint:nilnil // its close does nothing
	}
	mux, err := p.handlers(probes)
	if err != nil {
		return nil, err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	s := &server{ended: make(chan struct{}), http: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
	}}
	p.logger.InfoContext(ctx, "answering probes", slog.String("address", listener.Addr().String()))
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.ErrorContext(ctx, "the probes are no longer answered", slog.String("error", err.Error()))
		}
	}()
	return s, nil
}

// handlers has the probes and what the program adds. ServeMux panics where two of them are the same.
func (p *publisher) handlers(probes *probes) (mux *http.ServeMux, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("daemon.Program.Handlers: %v", cause)
		}
	}()
	mux = http.NewServeMux()
	mux.HandleFunc("GET /livez", probes.live)
	mux.HandleFunc("GET /readyz", probes.ready)
	if p.program.Metrics != nil {
		mux.Handle("GET /metrics", p.program.Metrics)
	}
	for pattern, handler := range p.program.Handlers {
		mux.Handle(pattern, handler)
	}
	return mux, nil
}

// close ends it when the relay has stopped. Who still reads an answer has a second for it.
func (s *server) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	<-s.ended
}
