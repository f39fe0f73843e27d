package drivers_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// A wire stands between a driver and a server and counts what the driver sends. It works for every
// driver alike, and sees what a tracer inside one would not: what goes over the network.
type wire struct {
	url string

	mu    sync.Mutex
	sent  sent
	holds map[byte]hold
}

// A hold keeps back messages of one kind.
type hold struct {
	caught  chan struct{} // gets one value when a message arrives
	release chan struct{} // closed to let it go
}

// sent is what went from client to server.
type sent struct {
	messages   int // of any kind
	statements int // executions: simple queries and Execute messages
	roundTrips int // requests that the server answers with ReadyForQuery
}

func (s sent) minus(before sent) sent {
	return sent{s.messages - before.messages, s.statements - before.statements, s.roundTrips - before.roundTrips}
}

// newWire listens in front of the server at this address until the test ends.
func newWire(t testing.TB, serverURL string) *wire {
	t.Helper()
	w := &wire{}
	w.url = proxy.Parsing(t, serverURL, func(to io.Writer, from io.Reader) {
		if err := w.forward(to, from); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
			t.Logf("wire: %v", err)
		}
	}).Through(t, serverURL)
	return w
}

// count returns what was sent so far. A driver that got its answer has sent the question, so this is
// exact between two calls.
func (w *wire) count() sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// hold keeps back the client's messages of this kind. It returns a channel that tells of the first one
// and a function that lets go, which must be called.
func (w *wire) hold(kind byte) (caught <-chan struct{}, release func()) {
	h := hold{caught: make(chan struct{}, 1), release: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = map[byte]hold{kind: h}
	return h.caught, sync.OnceFunc(func() { close(h.release) })
}

func (w *wire) waitIfHeld(kind byte) {
	w.mu.Lock()
	h, held := w.holds[kind]
	w.mu.Unlock()
	if !held {
		return
	}
	select {
	case h.caught <- struct{}{}:
	default:
	}
	<-h.release
}

// forward copies the client's messages one by one and counts each before the server sees it.
func (w *wire) forward(to io.Writer, from io.Reader) error {
	reader := bufio.NewReader(from)
	kind := byte(0) // the first message has none
	for {
		var header []byte
		if kind != 0 {
			next, err := reader.ReadByte()
			if err != nil {
				return err
			}
			kind, header = next, []byte{next}
		}
		length := make([]byte, 4)
		if _, err := io.ReadFull(reader, length); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(length)-4)
		if _, err := io.ReadFull(reader, body); err != nil {
			return err
		}
		w.note(kind)
		w.waitIfHeld(kind)
		if _, err := to.Write(append(append(header, length...), body...)); err != nil {
			return fmt.Errorf("to the server: %w", err)
		}
		if kind == 0 {
			kind = '?' // from here on each has one
		}
	}
}

func (w *wire) note(kind byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent.messages++
	switch kind {
	case 'Q': // a simple query
		w.sent.statements++
		w.sent.roundTrips++
	case 'E': // Execute
		w.sent.statements++
	case 'S': // Sync
		w.sent.roundTrips++
	}
}
