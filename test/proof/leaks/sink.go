package leaks

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// sink is a collector: it takes what tracing sends, over HTTP.
type sink struct {
	address string
	server  *http.Server
}

// newSink listens, and has the ledger look at every request.
func newSink(ledger *Ledger) (*sink, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("leaks: %w", err)
	}
	s := &sink{address: "http://" + listener.Addr().String()}
	s.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := io.Reader(r.Body)
			if r.Header.Get("Content-Encoding") == "gzip" {
				unpacked, err := gzip.NewReader(r.Body)
				if err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				body = unpacked
			}
			// Protocol buffers hold texts as they are.
			text, err := io.ReadAll(body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			ledger.Look(Traces, r.URL.Path, text)
		}),
	}
	go func() { _ = s.server.Serve(listener) }() // until close
	return s, nil
}

func (s *sink) close() { _ = s.server.Close() }
