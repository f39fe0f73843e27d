package emit

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/corpus"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// cut is where a proxy breaks a connection. In every case the client has sent COMMIT and gets no answer.
type cut int

const (
	whole       cut = iota
	beforeSent      // COMMIT never reaches the server
	afterSent       // the server has COMMIT; nobody waits for what it does with it
	afterAnswer     // the server has committed and said so
)

func (c cut) String() string {
	return [...]string{"whole", "COMMIT lost", "cut behind COMMIT", "answer to COMMIT lost"}[c]
}

// proxy stands between an application and PostgreSQL and cuts connections at their COMMIT.
type proxy struct {
	listener net.Listener
	server   string
	cut      cut
	group    sync.WaitGroup
}

// commitMessage is a simple query COMMIT on the wire, as pgx sends it.
var commitMessage = []byte("commit\x00")

// startProxy returns a URL that leads to the server through a proxy.
func startProxy(t testing.TB, server string, at cut) string {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: address.Host, cut: at}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.group.Wait()
	})
	address.Host = listener.Addr().String()
	return address.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.group.Go(func() { p.serve(client, server) })
	}
}

func (p *proxy) serve(client, server net.Conn) {
	closing := make(chan struct{})
	stop := sync.OnceFunc(func() {
		close(closing)
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	mute := make(chan struct{}) // closed when answers shall not reach the client any more
	p.group.Go(func() {
		defer stop()
		p.answers(client, server, mute)
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if p.cut != whole && bytes.Contains(buffer[:n], commitMessage) {
			p.atCommit(server, buffer[:n], mute, closing)
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) atCommit(server net.Conn, message []byte, mute, closing chan struct{}) {
	if p.cut == beforeSent {
		return
	}
	close(mute)
	if _, err := server.Write(message); err == nil && p.cut == afterAnswer {
		<-closing // answers hangs up when the server has answered
	}
}

// answers carries what the server says to the client, until it may not.
func (p *proxy) answers(client, server net.Conn, mute <-chan struct{}) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-mute:
			return
		default:
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// attempt runs the application's transaction once through a connection that is cut at COMMIT: a business
// row, an event, COMMIT. The error is what the application sees.
func (p place) attempt(t testing.TB, at cut, order string, event corpus.Given) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), startProxy(t, p.URL, at))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Held until the transaction has ended, on whatever way; see resolve.
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", p.Schema+order); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), p.SQL("INSERT INTO {schema}.orders (id) VALUES ($1) ON CONFLICT DO NOTHING"), order); err != nil {
		t.Fatal(err)
	}
	if _, err := corpus.Emit(t.Context(), tx, p.Schema, []corpus.Given{event}); err != nil {
		t.Fatal(err)
	}
	return tx.Commit(t.Context())
}

// resolve waits for the end of an attempt whose outcome is unknown, and looks at the business row.
func (p place) resolve(t testing.TB, order string) (committed bool) {
	t.Helper()
	tx := p.begin(t)
	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", p.Schema+order); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, tx)
	return p.Count(t, "SELECT count(*) FROM {schema}.orders WHERE id = $1", order) == 1
}

// lostConnection tells an error of the connection from an answer of the server.
func lostConnection(err error) bool {
	var state interface{ SQLState() string }
	return err != nil && !errors.As(err, &state)
}
