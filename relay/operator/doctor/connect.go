package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// connect goes the way to the database step by step, so that the first that fails is told as what it is.
func (x *examination) connect(ctx context.Context) bool {
	if !x.reach(ctx) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*x.Timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, x.Database)
	if err != nil {
		x.reportConnect(err)
		return false
	}
	x.conn, x.role = conn, x.Database.User
	var standby bool
	err = conn.QueryRow(ctx, `SELECT current_user::text, pg_catalog.pg_is_in_recovery(),
		(SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)`).Scan(&x.role, &standby, &x.superuser)
	switch {
	case err != nil:
		x.advisef("connect_failed", "look at the server's log", "the session cannot be used: %v", err)
	case standby:
		x.advisef("standby", "let the URL lead to the primary, for instance with target_session_attrs=read-write",
			"%s is in recovery", conn.PgConn().Conn().RemoteAddr())
	default:
		return true
	}
	_ = conn.Close(context.WithoutCancel(ctx))
	return false
}

// reach finds a server of the URL that answers at all.
func (x *examination) reach(ctx context.Context) bool {
	type serverAddress struct {
		host string
		port uint16
	}
	servers := []serverAddress{{x.Database.Host, x.Database.Port}}
	for _, other := range x.Database.Fallbacks {
		if next := (serverAddress{other.Host, other.Port}); next != servers[len(servers)-1] {
			servers = append(servers, next)
		}
	}
	var problems []func()
	for _, p := range servers {
		ctx, cancel := context.WithTimeout(ctx, x.Timeout)
		err := dial(ctx, p.host, p.port)
		cancel()
		if err == nil {
			return true
		}
		problems = append(problems, func() {
			if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
				x.advisef("name_unknown", "correct the host in the database URL, or the name server of this machine; "+
					"'getent hosts "+
					shell.Word(p.host)+"' asks as well", "the host %s cannot be found: %v", p.host, unknown.Err)
				return
			}
			x.advisef("port_closed", "start the server, or correct host and port in the database URL; 'pg_isready -h "+
				shell.Word(p.host)+" -p "+strconv.Itoa(int(p.port))+"' asks as well", "nobody answers at %s: %v",
				net.JoinHostPort(p.host, strconv.Itoa(int(p.port))), err)
		})
	}
	for _, report := range problems {
		report()
	}
	return false
}

// dial connects, and says nothing.
func dial(ctx context.Context, host string, port uint16) error {
	network, address := "tcp", net.JoinHostPort(host, strconv.Itoa(int(port)))
	if filepath.IsAbs(host) {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", host, port)
	} else if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return err //nolint:wrapcheck // it is told as it is
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		if operation, is := errors.AsType[*net.OpError](err); is {
			return operation.Err
		}
		return err //nolint:wrapcheck // it is told as it is
	}
	return conn.Close() //nolint:wrapcheck // it has answered
}

// reportConnect says why a server that answers takes no session.
func (x *examination) reportConnect(err error) {
	text := err.Error()
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) {
		text = answer.Message
	}
	switch code := sqlstate.Of(err); {
	// A server that has answered is one that a session was asked of: without TLS, if that had failed before and the URL
	// allows it. So its answer is what is wrong.
	case code == "" && aboutTLS(err):
		x.advisef("tls_failed", "compare sslmode and sslrootcert of the database URL with what the server has (SHOW ssl): "+
			"sslmode=verify-full needs ssl = on there and a certificate for this very host", "TLS with %s fails: %s",
			x.Database.Host, lastLine(text))
	case strings.HasPrefix(code, "28"):
		x.advisef("login_failed", "look at the user and password of the URL, and at pg_hba.conf of the server; its "+
			"log says more",
			"the server refuses the user %s: %s", x.Database.User, text)
	case code == "3D000":
		x.advisef("database_missing", "correct the database in the URL; 'psql -l' lists them", "%s", text)
	case code == "53300":
		x.advisef("connect_failed", "find out who has the connections (SELECT usename, count(*) FROM "+
			"pg_stat_activity GROUP BY 1)"+
			", or raise max_connections", "no connection is left: %s", text)
	default:
		x.advisef("connect_failed", "look at the server's log", "%s", lastLine(text))
	}
}

// lastLine is what pgconn says of its last attempt.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func aboutTLS(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &record) ||
		errors.As(err, &verify) || errors.As(err, &alert) || strings.Contains(err.Error(), "server refused TLS connection")
}

// checkClock compares the clocks. What the question took is not told apart, so it counts for neither.
func (x *examination) checkClock(ctx context.Context) error {
	var began, theirs, ended time.Time
	if err := x.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		began = x.Now()
		err := tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs)
		ended = x.Now()
		return err //nolint:wrapcheck // run names the check
	}); err != nil {
		return err
	}
	var difference time.Duration
	switch {
	case theirs.Before(began):
		difference = theirs.Sub(began)
	case theirs.After(ended):
		difference = theirs.Sub(ended)
	}
	if difference.Abs() <= x.ClockTolerance {
		return nil
	}
	which := "ahead of"
	if difference < 0 {
		which = "behind"
	}
	x.commandf("clock_differs", "sudo timedatectl set-ntp true", "the database's clock is %s %s this machine's",
		difference.Abs().Round(time.Millisecond), which)
	return nil
}
