package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/internal/suggest"
)

// What a configuration may be at most.
const (
	maxFileBytes  = 1 << 20
	maxValueBytes = 64 << 10
	maxItems      = 1000
)

var errEmpty = errors.New("empty: leave it out for the default")

// line gives the text of a value that is no list and no map.
func (g given) line() (string, error) {
	if g.list != nil || g.pairs != nil {
		return "", errors.New("must be one value, not a list or a map")
	}
	return g.text, checkLine(g.text)
}

// word is line for kinds of which nothing is no value.
func (g given) word() (string, error) {
	text, err := g.line()
	if err == nil && text == "" {
		return "", errEmpty
	}
	return text, err
}

// checkLine refuses what cannot be seen: it would show as something else.
func checkLine(text string) error {
	switch {
	case len(text) > maxValueBytes:
		return fmt.Errorf("%d bytes, the limit is %d", len(text), maxValueBytes)
	case !utf8.ValidString(text):
		return errors.New("not valid UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("holds a character that cannot be printed")
	}
	return nil
}

func parseText(g given) (string, error) { return g.line() }

// parseSecret lets lines and tabs pass: a key in PEM has them.
func parseSecret(g given) (Hidden, error) {
	switch {
	case g.list != nil || g.pairs != nil:
		return Hidden{}, errors.New("must be one value, not a list or a map")
	case g.text == "":
		return Hidden{}, errEmpty
	case len(g.text) > maxValueBytes:
		return Hidden{}, fmt.Errorf("%d bytes, the limit is %d", len(g.text), maxValueBytes)
	case !utf8.ValidString(g.text) || strings.Contains(g.text, "\x00"):
		return Hidden{}, errors.New("not a text")
	}
	return Hidden{g.text}, nil
}

func parseDuration(g given) (time.Duration, error) {
	text, err := g.word()
	if err != nil {
		return 0, err
	}
	if digits := strings.TrimLeft(text, "+-"); digits != "0" && strings.Trim(digits, "0123456789.") == "" {
		return 0, errors.New("a unit is missing: 500ms, 30s, 5m, 12h")
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("must be a duration like 500ms, 30s, 5m, 12h or 1h30m")
	}
	return duration, nil
}

// showDuration leaves out the zeros that Go writes: 12h and not 12h0m0s.
func showDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func parseInteger(g given) (int, error) {
	text, err := g.word()
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(text)
	if err != nil || text != strconv.Itoa(number) { // 010 is 8 to some and 10 to others
		return 0, errors.New("must be a whole number")
	}
	return number, nil
}

// sizes are the units of a size, the longest names first.
var sizes = []struct {
	name  string
	bytes int
}{
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"GB", 1_000_000_000},
	{"MB", 1_000_000},
	{"kB", 1000},
	{"KB", 1000},
	{"B", 1},
	{"", 1},
}

func parseSize(g given) (int, error) {
	text, err := g.word()
	if err != nil {
		return 0, err
	}
	for _, unit := range sizes {
		digits, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		number, err := strconv.Atoi(digits)
		if err != nil || number < 0 || strconv.Itoa(number) != digits {
			return 0, errors.New("must be a number of bytes like 65536, 64KiB or 10MB")
		}
		if number > math.MaxInt/unit.bytes {
			return 0, errors.New("too large")
		}
		return number * unit.bytes, nil
	}
	return 0, errors.New("must be a number of bytes like 65536, 64KiB or 10MB")
}

func showSize(size int) string {
	for _, unit := range sizes[:3] {
		if size > 0 && size%unit.bytes == 0 {
			return fmt.Sprint(size/unit.bytes) + unit.name
		}
	}
	return fmt.Sprint(size)
}

func parseBoolean(g given) (bool, error) {
	switch text, err := g.word(); {
	case err != nil:
		return false, err
	case text == "true":
		return true, nil
	case text == "false":
		return false, nil
	default:
		return false, errors.New("must be true or false")
	}
}

func parseChoice(options []string) func(given) (string, error) {
	return func(g given) (string, error) {
		text, err := g.word()
		if err != nil {
			return "", err
		}
		if !slices.Contains(options, text) {
			return "", fmt.Errorf("must be one of %s%s", strings.Join(options, ", "), suggest.DidYouMean(text, options))
		}
		return text, nil
	}
}

func parseList(g given) ([]string, error) {
	items := g.list
	if items == nil {
		text, err := g.line()
		if err != nil {
			return nil, err
		}
		items = split(text)
	}
	if len(items) > maxItems {
		return nil, fmt.Errorf("%d items, the limit is %d", len(items), maxItems)
	}
	for i, item := range items {
		if err := checkItem(item); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return items, nil
}

func parseMap(g given) (map[string]string, error) {
	pairs := g.pairs
	if pairs == nil {
		text, err := g.line()
		if err != nil {
			return nil, err
		}
		pairs = map[string]string{}
		for i, item := range split(text) {
			name, value, found := strings.Cut(item, "=")
			if _, twice := pairs[name]; twice || !found {
				return nil, fmt.Errorf("item %d: must be name=value, and each name once", i+1)
			}
			pairs[name] = value
		}
	}
	if len(pairs) > maxItems {
		return nil, fmt.Errorf("%d items, the limit is %d", len(pairs), maxItems)
	}
	for name, value := range pairs {
		if err := errors.Join(checkItem(name), checkItem(value)); err != nil || strings.Contains(name, "=") {
			return nil, errors.New("names and values must be printable text, not empty, without commas or spaces around them, " +
				"and names without =")
		}
	}
	return pairs, nil
}

// split takes a text with commas apart. Spaces around an item are nobody's.
func split(text string) []string {
	items := []string{}
	if strings.TrimSpace(text) == "" {
		return items
	}
	for item := range strings.SplitSeq(text, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items
}

// checkItem holds the items of a list to what a text with commas can say as well.
func checkItem(item string) error {
	switch {
	case item == "":
		return errors.New("empty")
	case strings.Contains(item, ","):
		return errors.New("holds a comma")
	case strings.TrimSpace(item) != item:
		return errors.New("begins or ends with a space")
	}
	return checkLine(item)
}

func showList(items []string) string { return strings.Join(items, ",") }

func showMap(pairs map[string]string) string {
	items := make([]string, 0, len(pairs))
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		items = append(items, name+"="+pairs[name])
	}
	return strings.Join(items, ",")
}
