package pgstore_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// meter stands between a store and PostgreSQL, and counts the bytes of the answers.
type meter struct {
	listener net.Listener
	server   string
	group    sync.WaitGroup
	bytes    atomic.Int64
}

func newMeter(t *testing.T, server string) *meter {
	t.Helper()
	m := &meter{listener: must(net.Listen("tcp", "127.0.0.1:0"))(t), server: must(url.Parse(server))(t).Host}
	m.group.Go(m.accept)
	t.Cleanup(func() {
		_ = m.listener.Close()
		m.group.Wait()
	})
	return m
}

func (m *meter) url(t *testing.T, server string) string {
	t.Helper()
	address := must(url.Parse(server))(t)
	address.Host = m.listener.Addr().String()
	return address.String()
}

func (m *meter) accept() {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		small(client)
		small(server)
		carry := func(to io.Writer, from io.Reader) {
			_, _ = io.Copy(to, from)
			_, _ = client.Close(), server.Close()
		}
		m.group.Go(func() { carry(server, client) })
		m.group.Go(func() { carry(client, io.TeeReader(server, m)) })
	}
}

// small keeps a socket from taking in what nobody has asked for: the kernel's own sizes go up to tens of megabytes.
func small(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_, _ = tcp.SetReadBuffer(64<<10), tcp.SetWriteBuffer(64<<10)
	}
}

// Write counts.
func (m *meter) Write(answer []byte) (int, error) {
	m.bytes.Add(int64(len(answer)))
	return len(answer), nil
}

// TestAReadEndsAtItsBytes: what is behind the bound is not received, whatever is asked for, and the next read works.
func TestAReadEndsAtItsBytes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const events, size, bound = 200, 256 << 10, 1 << 20
		all := make([]string, events)
		for i := range all {
			all[i] = outbox.NewID().String()
		}
		w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
			SELECT id::uuid, 'order_created', 'order', '1', format('{"eventId":"%s","data":"%s"}', id, $2::text)::json 
			FROM unnest($1::text[]) id`,
			all, strings.Repeat("x", size))
		m := newMeter(t, w.url)
		store := pgstore.New(w.open(t, m.url(t, w.url), func(config *pgxpool.Config) {
			pgstore.Configure(config, lease)
			dial := config.ConnConfig.DialFunc
			config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err == nil {
					small(conn)
				}
				return conn, err
			}
		}), w.schema)
		for range 2 {
			before := m.bytes.Load()
			answer, err := store.Read(t.Context(), core.Read{
				Lanes: []core.LaneRead{{Lane: w.lane(t, "1"), Limit: events}}, MaxBytes: bound,
			})
			if err != nil || !answer.Stopped || len(answer.Events) == 0 || len(answer.Events) > bound/size ||
				answer.Events[0].ID.String() != all[0] {
				t.Fatalf("read %d events, stopped %t, %v", len(answer.Events), answer.Stopped, err)
			}
			// What the sockets on the way hold was sent by then, and on PostgreSQL's side that is some megabytes.
			if received := m.bytes.Load() - before; received > events*size/2 {
				t.Errorf("%d bytes were received for a bound of %d", received, bound)
			}
		}
	})
}
