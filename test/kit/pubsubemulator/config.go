package pubsubemulator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config says where an emulator listens and where it keeps its journal.
type Config struct {
	// Addr is the loopback host:port of the Pub/Sub gRPC service. Port 0 picks a free one, which
	// [Server.Addr] tells. Defaults to 127.0.0.1:0.
	Addr string

	// FaultAddr is the loopback host:port of the HTTP fault port. Port 0 picks a free one, which
	// [Server.FaultAddr] tells. Defaults to 127.0.0.1:0.
	FaultAddr string

	// Dir is the directory of the journal. It is created when missing, and belongs to one running
	// emulator at a time. Required.
	Dir string

	// Fsync makes every accepted message survive the loss of the machine, not only of the process:
	// a publisher's answer waits for fsync, which publishers that wait together share. Defaults to
	// false, which is enough for kill -9.
	Fsync bool

	// LongestBackoff limits the delays of the subscriptions' retry policies, for tests that cannot wait as long as
	// production does. Defaults to 0: the policies are honoured as they are.
	LongestBackoff time.Duration

	// TLS makes the Pub/Sub service speak TLS with the certificate in it, as Google's does. Defaults to nil: plain text.
	TLS *tls.Config

	// Token is the access token without which calls get UNAUTHENTICATED. Defaults to none: everybody may call.
	Token string

	// Logger gets the few things that happen outside a call. Defaults to slog.Default().
	Logger *slog.Logger
}

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (c Config) withDefaults() (Config, error) {
	const anyLoopbackPort = "127.0.0.1:0"
	if c.Addr == "" {
		c.Addr = anyLoopbackPort
	}
	if c.FaultAddr == "" {
		c.FaultAddr = anyLoopbackPort
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("pubsubemulator: no journal directory: set Config.Dir"))
	}
	errs = append(errs, checkLoopback("Addr", c.Addr), checkLoopback("FaultAddr", c.FaultAddr))
	return c, errors.Join(errs...)
}

// checkLoopback refuses an address that another machine could reach: there is hardly any authentication, and
// the fault port changes how the broker behaves.
func checkLoopback(field, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("pubsubemulator: %s %q is not host:port, such as 127.0.0.1:18085: %w", field, addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("pubsubemulator: %s %q is not a loopback address: use 127.0.0.1, [::1] or localhost", field, addr)
}
