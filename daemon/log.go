package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// mostLogged is how many bytes a value in the log has at most.
const mostLogged = 2048

// newHandler writes one line a record, whatever is in it, with values of bounded length.
func newHandler(values *config.Values, to io.Writer, terminal bool) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(logLevel.Get(values))) // one of the key's options
	options := slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, attribute slog.Attr) slog.Attr {
		attribute.Value = capped(attribute.Value)
		return attribute
	}}
	if format := logFormat.Get(values); format == "text" || format == "auto" && terminal {
		return newForPeople(to, options)
	}
	return slog.NewJSONHandler(to, &options)
}

// isTerminal tells whether somebody looks at the log as it is written.
func isTerminal(to io.Writer) bool {
	file, is := to.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// capped shortens a value. What is not a text, a number or a time is made one first if it would be long. A duration is
// written as people write it.
func capped(value slog.Value) slog.Value {
	value = value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		return slog.StringValue(cut(value.String()))
	case slog.KindAny:
		if text := fmt.Sprint(value.Any()); len(text) > mostLogged {
			return slog.StringValue(cut(text))
		}
	case slog.KindDuration:
		return slog.StringValue(value.Duration().String())
	case slog.KindBool, slog.KindFloat64, slog.KindGroup, slog.KindInt64, slog.KindLogValuer, slog.KindTime,
		slog.KindUint64:
	}
	return value
}

// cut keeps the beginning of a text, of whole characters.
func cut(text string) string {
	if len(text) <= mostLogged {
		return text
	}
	end := mostLogged
	for end > mostLogged-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + fmt.Sprintf("... (%d bytes)", len(text))
}
