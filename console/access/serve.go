package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// lastAnswers is how long those who still read an answer have for it when the console ends.
const lastAnswers = 5 * time.Second

// Serve answers on a listener until the context ends, and returns nil then. Requests that are under way have 5
// seconds to end. The logger gets what the server has to say about broken connections, at debug; nil for none.
//
// An answer that takes longer than a minute to write is cut off.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the console is no longer served: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the console is no longer served: %w", err)
	}
	return nil
}

// TLSFiles is TLS with a certificate and a key from files. They are read again when they have changed, so a renewed
// certificate is in use a few seconds later. Others than the key's owner and group must not be able to read it.
func TLSFiles(certFile, keyFile string, logger *slog.Logger) (*tls.Config, error) {
	return tlsFiles(certFile, keyFile, logger, time.Now)
}

func tlsFiles(certFile, keyFile string, logger *slog.Logger, now func() time.Time) (*tls.Config, error) {
	if certFile == "" || keyFile == "" {
		return nil, errors.New("TLS needs a certificate and a key: give both --tls-cert and --tls-key")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	pair := &watched[tls.Certificate]{
		name: certFile, every: lookEvery, now: now, logger: logger,
		read: func() ([]byte, error) {
			cert, err := readPrivate(certFile, 0)
			if err != nil {
				return nil, err
			}
			key, err := readPrivate(keyFile, privateTo(true))
			return bytes.Join([][]byte{cert, key}, []byte("\n")), err
		},
		parse: func(both []byte) (tls.Certificate, error) { // of which each part takes what is its own
			certificate, err := tls.X509KeyPair(both, both)
			if err != nil {
				return certificate, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
			}
			return certificate, nil
		},
	}
	if err := pair.open(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(hello.Context()), nil },
	}, nil
}
