package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
)

// forPeople writes lines that are read as they come: the time of day, the level, what happened, and then the
// attributes as slog's text has them.
type forPeople struct {
	attributes slog.Handler // into the line
	line       *line
}

// line is the one that is being written.
type line struct {
	mutex sync.Mutex
	text  bytes.Buffer
	to    io.Writer
}

func newForPeople(to io.Writer, options slog.HandlerOptions) *forPeople {
	line := &line{to: to}
	others := options.ReplaceAttr
	options.ReplaceAttr = func(groups []string, attribute slog.Attr) slog.Attr {
		if len(groups) == 0 && (attribute.Key == slog.TimeKey || attribute.Key == slog.LevelKey ||
			attribute.Key == slog.MessageKey) {
			return slog.Attr{} // they stand before the attributes
		}
		return others(groups, attribute)
	}
	return &forPeople{attributes: slog.NewTextHandler(&line.text, &options), line: line}
}

// Enabled is that of slog's text.
func (h *forPeople) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attributes.Enabled(ctx, level)
}

// Handle writes one line.
func (h *forPeople) Handle(ctx context.Context, record slog.Record) error {
	h.line.mutex.Lock()
	defer h.line.mutex.Unlock()
	h.line.text.Reset()
	fmt.Fprintf(&h.line.text, "%s %-5s %s  ", record.Time.Format("15:04:05.000"), record.Level,
		printable(cut(record.Message)))
	if err := h.attributes.Handle(ctx, record); err != nil {
		return err //nolint:wrapcheck // it is slog's
	}
	_, err := h.line.to.Write(append(bytes.TrimRight(h.line.text.Bytes(), " \n"), '\n'))
	return err //nolint:wrapcheck // it is the reader's
}

// WithAttrs adds attributes to every line.
func (h *forPeople) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &forPeople{attributes: h.attributes.WithAttrs(attributes), line: h.line}
}

// WithGroup puts the attributes that follow into a group.
func (h *forPeople) WithGroup(name string) slog.Handler {
	return &forPeople{attributes: h.attributes.WithGroup(name), line: h.line}
}

// printable quotes a message that would be more than one line, or play with the terminal.
func printable(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}
