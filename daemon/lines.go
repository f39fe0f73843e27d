package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// mostLines is how many lines wait for a reader who is slow. More are dropped, and counted.
const mostLines = 4096

// lines hands what is logged to a goroutine of its own, so that a reader who does not read cannot stop the relay.
type lines struct {
	to      io.Writer
	queue   chan []byte
	dropped atomic.Int64
	stop    chan struct{}
	ended   chan struct{}
	// said writes to the reader itself.
	said *slog.Logger
}

// newLines begins to write; handler makes the line that tells of dropped ones.
func newLines(to io.Writer, handler func(io.Writer) slog.Handler) *lines {
	l := &lines{
		to: to, queue: make(chan []byte, mostLines), stop: make(chan struct{}), ended: make(chan struct{}),
		said: slog.New(handler(to)),
	}
	go l.run()
	return l
}

// Write takes one line. It never blocks and never fails.
func (l *lines) Write(line []byte) (int, error) {
	select {
	case l.queue <- bytes.Clone(line):
	default:
		l.dropped.Add(1)
	}
	return len(line), nil
}

func (l *lines) run() {
	defer close(l.ended)
	for {
		select {
		case line := <-l.queue:
			l.write(line)
		case <-l.stop:
			for len(l.queue) > 0 {
				l.write(<-l.queue)
			}
			l.reportDropped()
			return
		}
	}
}

// write hands one line on. A reader who is gone is nobody to tell.
func (l *lines) write(line []byte) {
	l.reportDropped()
	_, _ = l.to.Write(line)
}

func (l *lines) reportDropped() {
	if count := l.dropped.Swap(0); count > 0 {
		l.said.WarnContext(context.Background(), "lines of the log were dropped: its reader is slow",
			slog.Int64("count", count))
	}
}

// close writes what waits, for as long as that may take at the end of a process. It is called once.
func (l *lines) close(patience time.Duration) {
	close(l.stop)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C:
	}
}
