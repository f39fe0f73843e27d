package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// write logs a value every way there is, and checks that each record is one line of bounded length.
func write(t *testing.T, args []string, value string) string {
	t.Helper()
	found, err := inProcess(t, nil).load(args, []string{nowhere})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(newHandler(found.values, &log, false))
	logger.InfoContext(t.Context(), value, //nolint:sloglint // that is what is tested
		slog.String("text", value), slog.Any("error", errors.New(value)), slog.Any("any", []string{value}),
		slog.Group("group", slog.String("text", value)), slog.Any("secret", config.Hide(value)))
	if strings.Count(log.String(), "\n") != 1 || log.Len() > 7*6*(mostLogged+100) { // six bytes for one at most
		t.Errorf("%d lines of %d bytes", strings.Count(log.String(), "\n"), log.Len())
	}
	return log.String()
}

func TestOneLineARecord(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"", "plain", "two\nlines", "\r\n\x00\x1b[31m\u2028\u2029\u0085", "\xff\xfe", `"},{"level":"ERROR"`,
		strings.Repeat("x", 1<<20), strings.Repeat("東", 5000), strings.Repeat("\n", 5000),
	} {
		line := write(t, nil, value)
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil || record["level"] != "INFO" {
			t.Errorf("not a record: %v: %.200s", err, line)
		}
		if text, _ := record["text"].(string); utf8.ValidString(value) && len(value) <= mostLogged && text != value {
			t.Errorf("%q is logged as %q", value, text)
		}
		write(t, []string{"--log-format=text"}, value)
	}
	if line := write(t, nil, strings.Repeat("東", 5000)); !strings.Contains(line, "東... (15000 bytes)") {
		t.Errorf("what was cut off is not told: %.3000s", line)
	}
}

func TestFormatAndLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args     string
		terminal bool
		json     bool
		info     bool
	}{
		{json: true, info: true},
		{terminal: true, info: true},
		{args: "--log-format=json", terminal: true, json: true, info: true},
		{args: "--log-format=text", info: true},
		{args: "--log-level=warn", json: true},
	} {
		found, err := inProcess(t, nil).load(strings.Fields(c.args), []string{nowhere})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		logger := slog.New(newHandler(found.values, &log, c.terminal))
		logger.InfoContext(t.Context(), "info")
		logger.WarnContext(t.Context(), "warn")
		if strings.HasPrefix(log.String(), "{") != c.json || strings.Contains(log.String(), "info") != c.info ||
			!strings.Contains(log.String(), "warn") {
			t.Errorf("%+v: %s", c, log.String())
		}
	}
}

// A line for people begins with when, how bad and what, and says durations as they do.
func TestALineForPeople(t *testing.T) {
	t.Parallel()
	found, err := inProcess(t, nil).load(nil, []string{nowhere})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(newHandler(found.values, &log, true)).With(slog.String("lane", "7")).WithGroup("more")
	logger.WarnContext(t.Context(), "the drain is slow", slog.Duration("at_most", 90*time.Second),
		slog.String("error", "two words"))
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3} WARN  the drain is slow  lane=7 more\.at_most=1m30s ` +
		`more\.error="two words"\n$`)
	if !want.MatchString(log.String()) {
		t.Errorf("got %q", log.String())
	}
}
