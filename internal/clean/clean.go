// Package clean makes the text of an error fit to be stored and shown: valid UTF-8 without control
// characters, short, and without secrets or data.
//
// What a broker or a driver says is not ours to trust. A NUL or a broken rune would make the settle
// fail, an escape sequence would speak to an operator's terminal, and a message may quote the
// credentials it was refused with, or the row it is about. Redaction knows the usual forms and rather
// takes too much; it cannot know a secret that looks like any other word.
package clean

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxRunes is the length of a cleaned text, as the columns last_error and error_detail have it.
	MaxRunes = 2048
	// maxInput bounds the work. So many bytes are enough for a result at its limit, in any script.
	maxInput = utf8.UTFMax * MaxRunes
	// mark stands for what was taken out. No rule takes it for something to take out itself.
	mark = "***"
)

// Error cleans the text of an error, also where its Error method panics. No error is no text.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(textOf(err))
}

func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "an error that cannot say what it is: its Error method panics"
		}
	}()
	return err.Error()
}

// Text cleans a text. Cleaning it again changes nothing.
func Text(text string) string {
	text = bound(text)
	// Taking something out may bring together what then is to be taken out as well, so it ends when
	// nothing changes any more.
	for range 8 {
		next := limit(redact(strip(text)))
		if next == text {
			return text
		}
		text = next
	}
	return mark // it would not settle: nothing of it can be trusted
}

// bound cuts a text that is far too long, in front of the word that the cut would go through: half a
// secret may not be recognised as one.
func bound(text string) string {
	if len(text) <= maxInput {
		return text
	}
	text = text[:maxInput]
	return text[:strings.LastIndexAny(text, " \t\r\n")+1] + "…"
}

// limit cuts to the length of the column.
func limit(text string) string {
	if len(text) <= MaxRunes || utf8.RuneCountInString(text) <= MaxRunes {
		return text
	}
	runes := 0
	for i := range text {
		if runes++; runes == MaxRunes {
			return text[:i] + "…"
		}
	}
	return text
}

// Cut cuts a name to the length of a text. Names are logged as they are, and one that went around the checks of
// emit can be of any length.
func Cut(name string) string { return limit(name) }

// Line makes one line of a text that people wrote, without what speaks to a terminal. It takes nothing else out, and
// the line may be of any length.
func Line(text string) string { return strip(text) }

// Writer takes from all that is written to it what speaks to a terminal. Line breaks and tabs stay.
func Writer(to io.Writer) io.Writer { return &writer{to} }

type writer struct{ to io.Writer }

func (w *writer) Write(text []byte) (int, error) {
	kept := escapes.ReplaceAllString(strings.ToValidUTF8(string(text), "\uFFFD"), "")
	kept = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && invisible(r) {
			return -1
		}
		return r
	}, kept)
	if _, err := io.WriteString(w.to, kept); err != nil {
		return 0, err //nolint:wrapcheck // it is the caller's own writer
	}
	return len(text), nil
}

// invisible are characters that control a terminal, and those that turn or hide the text around them.
func invisible(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// strip takes out what is not text. Lines become one: a line of its own can look like an entry of the log.
func strip(text string) string {
	text = escapes.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r): // line and paragraph separators included
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

func redact(text string) string {
	for _, rule := range rules {
		if rule.needs != "" && !strings.ContainsAny(text, rule.needs) {
			continue // most errors need none of them
		}
		text = rule.pattern.ReplaceAllString(text, rule.by)
	}
	return quotes(text)
}
