// Package jsonview shows JSON as HTML as it stands: numbers keep all their digits, keys their order, and what is
// written twice is seen twice. Values that nobody shall see are masked by JSON pointers.
package jsonview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// The bounds of what is shown: whatever a producer has written, the page stays one that a server can make and a browser
// can show.
const (
	deepest  = 200     // values one in another; deeper ones are shown as they are stored
	indented = 40      // of them get further to the right
	longest  = 8 << 20 // bytes of HTML
)

// errLong ends a view that is long enough.
var errLong = errors.New("the rest is not shown")

// HTML shows a document. Marks are JSON pointers of values that are wrong.
func HTML(raw json.RawMessage, mask, marks []string) template.HTML {
	v := &view{decoder: json.NewDecoder(bytes.NewReader(raw)), mask: split(mask), marks: split(marks)}
	v.decoder.UseNumber()
	if err := v.value(); err != nil && !errors.Is(err, errLong) {
		if len(mask) > 0 { // what cannot be read cannot be masked
			return "not shown: it is no JSON, and parts of payloads are masked"
		}
		v.out.Reset()
		v.text(string(raw))
	}
	if v.cut {
		fmt.Fprintf(&v.out, "\n… of these %d bytes the rest is not shown", len(raw))
	}
	return template.HTML(v.out.String()) //nolint:gosec // every text in it is escaped
}

type view struct {
	decoder     *json.Decoder
	out         strings.Builder
	mask, marks [][]string
	path        []string // of the value that is shown
	cut         bool     // there was no room for all
}

func split(pointers []string) (all [][]string) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, pointer := range pointers {
		parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
		for i := range parts {
			parts[i] = unescape.Replace(parts[i])
		}
		all = append(all, parts)
	}
	return all
}

// Hides tells whether a mask hides what stands at a path, or something in it or around it.
func Hides(mask, path []string) bool {
	return slices.ContainsFunc(split(mask), func(pointer []string) bool { return along(pointer, path) })
}

func meets(pointers [][]string, path []string) bool {
	return slices.ContainsFunc(pointers, func(pointer []string) bool {
		return len(pointer) == len(path) && along(pointer, path)
	})
}

// along tells whether a pointer and a path lead the same way, as far as both of them go.
func along(pointer, path []string) bool {
	for i := range min(len(pointer), len(path)) {
		if pointer[i] != "*" && pointer[i] != path[i] {
			return false
		}
	}
	return true
}

func (v *view) value() error {
	if v.out.Len() >= longest {
		v.cut = true
		return errLong
	}
	token, err := v.decoder.Token()
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if meets(v.mask, v.path) {
		v.span("jm", "masked")
		return v.skip(token)
	}
	marked := meets(v.marks, v.path)
	if marked {
		v.out.WriteString("<mark>")
	}
	switch token := token.(type) {
	case json.Delim:
		err = v.inside(token)
	case string:
		v.span("js", quoted(token))
	case json.Number:
		v.span("jn", token.String())
	default:
		v.span("jn", fmt.Sprint(orNull(token)))
	}
	if marked {
		v.out.WriteString("</mark>")
	}
	return err
}

func orNull(token json.Token) any {
	if token == nil {
		return "null"
	}
	return token
}

// inside shows an object or array.
func (v *view) inside(open json.Delim) error {
	depth := len(v.path)
	if depth >= deepest {
		return io.ErrShortBuffer
	}
	end := "}"
	if open == '[' {
		end = "]"
	}
	v.out.WriteString(open.String())
	count := 0
	for ; v.decoder.More(); count++ {
		if count > 0 {
			v.out.WriteString(",")
		}
		v.line(depth + 1)
		key := fmt.Sprint(count)
		if open == '{' {
			token, err := v.decoder.Token()
			if err != nil {
				return fmt.Errorf("read a key: %w", err)
			}
			key = fmt.Sprint(token)
			v.span("jk", quoted(key))
			v.out.WriteString(": ")
		}
		v.path = append(v.path, key)
		if err := v.value(); err != nil {
			return err
		}
		v.path = v.path[:depth]
	}
	if count > 0 {
		v.line(depth)
	}
	v.out.WriteString(end)
	if _, err := v.decoder.Token(); err != nil {
		return fmt.Errorf("read the end: %w", err)
	}
	return nil
}

// skip passes over the rest of a value.
func (v *view) skip(token json.Token) error {
	depth := 0
	for {
		if delim, ok := token.(json.Delim); ok {
			if delim == '{' || delim == '[' {
				depth++
			} else {
				depth--
			}
		}
		if depth == 0 {
			return nil
		}
		var err error
		if token, err = v.decoder.Token(); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

func (v *view) line(depth int) { v.out.WriteString("\n" + strings.Repeat("  ", min(depth, indented))) }

func (v *view) span(class, text string) {
	v.out.WriteString(`<span class="` + class + `">`)
	v.text(text)
	v.out.WriteString(`</span>`)
}

// text writes one, as far as there is room.
func (v *view) text(text string) {
	if room := max(longest-v.out.Len(), 0); len(text) > room {
		text, v.cut = strings.ToValidUTF8(text[:room], "")+"…", true
	}
	v.out.WriteString(template.HTMLEscapeString(text))
}

// quoted writes a string as JSON does, and leaves < and > as they are: they are escaped for HTML afterwards.
func quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(out.String(), "\n")
}
