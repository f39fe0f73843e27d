package dev

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// quiet is the relay's log for a developer: what is wrong, without what the steps tell already.
type quiet struct{ notice func(Notice) }

// told are lines about steps, which are notices of their own.
var told = []string{"event", "topic paused", "topic resumed", "alarm"}

// Enabled takes warnings and errors.
func (quiet) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle makes a notice of a line.
func (q quiet) Handle(_ context.Context, record slog.Record) error {
	if slices.Contains(told, record.Message) {
		return nil
	}
	var text strings.Builder
	text.WriteString(record.Message)
	record.Attrs(func(attribute slog.Attr) bool {
		text.WriteString(", " + attribute.Key + ": " + attribute.Value.String())
		return true
	})
	q.notice(Notice{Bad: true, Text: text.String()})
	return nil
}

// WithAttrs leaves attributes out: there is one relay.
func (q quiet) WithAttrs([]slog.Attr) slog.Handler { return q }

// WithGroup is the same.
func (q quiet) WithGroup(string) slog.Handler { return q }
