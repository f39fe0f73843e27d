package listen

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(patientMain{m}) }

// patientMain waits for goroutines that were told to end: goleak itself looks for half a second, which may be too
// little on a busy machine.
type patientMain struct{ *testing.M }

func (c patientMain) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > patience {
			break // and fail
		}
	}
	return code
}

// patience bounds every wait of these tests; nothing needs nearly as long.
const patience = 2 * time.Minute

func servers() map[string]string {
	urls := map[string]string{
		"postgres18": "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable",
		"postgres15": "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable",
	}
	for name, variable := range map[string]string{
		"postgres18": "SERVICES_POSTGRES18_URL", "postgres15": "SERVICES_POSTGRES15_URL",
	} {
		if given := os.Getenv(variable); given != "" {
			urls[name] = given
		}
	}
	return urls
}

func onEach(t *testing.T, test func(t *testing.T, server string)) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

// An ear is a listener that runs, and what it heard.
type ear struct {
	schema string
	woken  chan struct{}
	pids   chan uint32 // of its connections' backends, in order
	stop   func()      // ends it and waits
}

func listening(t *testing.T, server string, change func(*listener)) *ear {
	t.Helper()
	e := &ear{
		schema: "s" + strings.ToLower(rand.Text()[:12]), woken: make(chan struct{}, 1000), pids: make(chan uint32, 1000),
	}
	l := &listener{
		schema: e.schema, woken: func() { e.woken <- struct{}{} },
		connect: func(ctx context.Context) (*pgx.Conn, error) {
			conn, err := pgx.Connect(ctx, server)
			if err == nil {
				e.pids <- conn.PgConn().PID()
			}
			return conn, err
		},
		quiet: patience, answer: patience, least: time.Millisecond, most: 50 * time.Millisecond,
	}
	if change != nil {
		change(l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { l.run(ctx) })
	e.stop = func() { cancel(); group.Wait() }
	t.Cleanup(e.stop)
	return e
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
		panic("unreachable")
	}
}

func exec(t *testing.T, server, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatalf("%v\nIs it running? `make services` starts it.", err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func notify(t *testing.T, server, schema string) {
	t.Helper()
	exec(t, server, "SELECT pg_notify('posthaste', $1)", schema)
}

func TestHearsItsOwnSchemaOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		e := listening(t, server, nil)
		pid := receive(t, "the backend", e.pids)
		receive(t, "the connect", e.woken)
		// One transaction, so that they arrive together.
		exec(t, server,
			"DO $$ BEGIN PERFORM pg_notify('posthaste', 'another'), pg_notify('posthaste', ''), pg_notify('other', '"+
				e.schema+"'), pg_notify('posthaste', '"+e.schema+"'); END $$")
		receive(t, "the notification", e.woken)
		exec(t, server, "SELECT pg_terminate_backend($1)", pid)
		receive(t, "the second backend", e.pids) // by now it has dealt with all that the first one sent
		receive(t, "the second connect", e.woken)
		if len(e.woken) != 0 {
			t.Errorf("woken %d times more", len(e.woken))
		}
	})
}

// Fault W1 and W2: the backend dies, and the new one is heard. Neither is ever in a transaction.
func TestListensAgainAfterItsBackendWasTerminated(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		e := listening(t, server, nil)
		for range 3 {
			pid := receive(t, "the backend", e.pids)
			receive(t, "the connect", e.woken)
			// Not by xact_start: a backend that hears of somebody else's notification has a transaction of its own for a moment.
			if count(t, server, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'idle'", pid) != 1 {
				t.Error("the listener is in a transaction")
			}
			notify(t, server, e.schema)
			receive(t, "the notification", e.woken)
			exec(t, server, "SELECT pg_terminate_backend($1)", pid)
		}
		receive(t, "the connect", e.woken)
	})
}

func count(t *testing.T, server, query string, args ...any) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A line carries bytes to a server until it is cut, or goes silent: then it still takes them.
type line struct {
	server   string
	listener net.Listener
	group    sync.WaitGroup
	mu       sync.Mutex
	silent   chan struct{} // closed when the connections of now shall carry nothing more
	conns    []net.Conn
}

func startLine(t *testing.T, server string) (*line, string) {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{server: address.Host, listener: listener, silent: make(chan struct{})}
	l.group.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		l.group.Wait()
	})
	address.Host = listener.Addr().String()
	return l, address.String()
}

func (l *line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		silent := l.silent
		l.mu.Unlock()
		l.group.Go(func() { carry(server, client, silent) })
		l.group.Go(func() { carry(client, server, silent) })
	}
}

func carry(to, from net.Conn, silent <-chan struct{}) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-silent:
			continue
		default:
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

func (l *line) fallSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.silent)
	l.silent = make(chan struct{})
}

func TestListensAgainAfterTheLineWasCut(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		cable, through := startLine(t, server)
		e := listening(t, through, nil)
		receive(t, "the connect", e.woken)
		for range 5 {
			cable.cut()
			receive(t, "the connect after the cut", e.woken)
			notify(t, server, e.schema)
			receive(t, "the notification", e.woken)
		}
	})
}

// A peer that vanishes without a word is noticed by asking it.
func TestNoticesAPeerThatFellSilent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		cable, through := startLine(t, server)
		e := listening(t, through, func(l *listener) { l.quiet, l.answer = 50*time.Millisecond, 2*time.Second })
		receive(t, "the first backend", e.pids)
		receive(t, "the connect", e.woken)
		notify(t, server, e.schema)
		receive(t, "the notification", e.woken)
		cable.fallSilent()
		receive(t, "the second backend", e.pids)
		receive(t, "the connect after the silence", e.woken)
		notify(t, server, e.schema)
		receive(t, "the notification", e.woken)
	})
}

// Being asked does not cost the connection.
func TestAQuietConnectionIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		e := listening(t, server, func(l *listener) { l.quiet = time.Millisecond })
		pid := receive(t, "the backend", e.pids)
		receive(t, "the connect", e.woken)
		for range 50 {
			notify(t, server, e.schema)
			receive(t, "the notification", e.woken)
		}
		e.stop()
		if len(e.pids) != 0 {
			t.Errorf("%d connections more than backend %d", len(e.pids), pid)
		}
	})
}

// In a bubble, because a connect that is refused needs no server.
func TestTriesForEverWithABoundedDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		Listen(ctx, func(context.Context) (*pgx.Conn, error) {
			tries = append(tries, time.Now())
			return nil, errors.New("refused")
		}, "public", func() { t.Error("woken without a connection") })
		if len(tries) < 360 || len(tries) > 800 {
			t.Errorf("%d attempts in an hour", len(tries))
		}
		delays := map[time.Duration]bool{}
		for i := 1; i < len(tries); i++ {
			delay := tries[i].Sub(tries[i-1])
			if delay < 50*time.Millisecond || delay > 10*time.Second {
				t.Errorf("attempt %d came %v after the one before", i, delay)
			}
			delays[delay] = true
		}
		if len(delays) < 300 {
			t.Errorf("%d different delays: without jitter all relays would come at once", len(delays))
		}
	})
}

// A connect that hangs is given up.
func TestAConnectHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		Listen(ctx, func(ctx context.Context) (*pgx.Conn, error) {
			tries++
			<-ctx.Done()
			return nil, ctx.Err()
		}, "public", func() {})
		if tries < 4 {
			t.Errorf("%d attempts in a minute", tries)
		}
	})
}
