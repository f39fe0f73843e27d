package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// checkDocument says what is wrong with a JSON document that shall be stored, or "". A document may
// parse and still hurt: PostgreSQL's json type stores \u0000 and lone surrogates and then cannot read
// the row, a number of a few bytes can stand for one of 131,000 digits, and depth costs stack wherever
// the document is read. encoding/json checks the grammar; the walk behind it checks those.
func checkDocument(document []byte) string {
	if !utf8.Valid(document) {
		return "not valid UTF-8"
	}
	if !json.Valid(document) {
		return "not one valid JSON document"
	}
	w := walk{document: document}
	for w.at < len(document) && w.problem == "" {
		w.step()
	}
	return w.problem
}

// checkValid is checkData for what json.Unmarshal has taken.
func checkValid(data json.RawMessage) string {
	if !utf8.Valid(data) {
		return "not valid UTF-8"
	}
	w := walk{document: data}
	for w.at < len(data) && w.problem == "" {
		w.step()
	}
	if w.problem == "" && bytes.TrimLeft(data, " \t\r\n")[0] != '{' {
		return "must be a JSON object"
	}
	return w.problem
}

// walk goes once over a document that is known to be well-formed.
type walk struct {
	document []byte
	at       int
	depth    int
	keys     int
	problem  string
}

func (w *walk) step() {
	switch c := w.document[w.at]; {
	case c == '"':
		w.text()
	case c == '-' || c >= '0' && c <= '9':
		w.number()
	default:
		switch c {
		case '{', '[':
			if w.depth++; w.depth > maxDepth {
				w.problem = fmt.Sprintf("nested deeper than %d levels", maxDepth)
			}
		case '}', ']':
			w.depth--
		case ':':
			if w.keys++; w.keys > maxKeys {
				w.problem = fmt.Sprintf("more than %d keys", maxKeys)
			}
		}
		w.at++
	}
}

// text passes a string and refuses the escapes that PostgreSQL stores but cannot read.
func (w *walk) text() {
	for w.at++; w.document[w.at] != '"'; w.at++ {
		if w.document[w.at] != '\\' {
			continue
		}
		w.at++
		if w.document[w.at] != 'u' {
			continue
		}
		unit := w.hex(w.at + 1)
		w.at += 4
		switch {
		case unit == 0:
			w.problem = `holds the escape \u0000, which PostgreSQL cannot read`
		case unit >= 0xdc00 && unit <= 0xdfff:
			w.problem = "holds half of a surrogate pair"
		case unit >= 0xd800 && unit <= 0xdbff:
			w.secondHalf()
		}
	}
	w.at++
}

func (w *walk) secondHalf() {
	rest := w.document[w.at+1:]
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		w.problem = "holds half of a surrogate pair"
		return
	}
	if unit := w.hex(w.at + 3); unit < 0xdc00 || unit > 0xdfff {
		w.problem = "holds half of a surrogate pair"
		return
	}
	w.at += 6
}

func (w *walk) hex(from int) uint64 {
	unit, _ := strconv.ParseUint(string(w.document[from:from+4]), 16, 16) // json.Valid saw four digits
	return unit
}

func (w *walk) number() {
	digits := 0
	for ; w.at < len(w.document); w.at++ {
		c := w.document[w.at]
		if c >= '0' && c <= '9' {
			digits++
		} else if c != '-' && c != '.' {
			break
		}
	}
	w.limitDigits(digits)
	if w.at < len(w.document) && (w.document[w.at] == 'e' || w.document[w.at] == 'E') {
		w.exponent()
	}
}

func (w *walk) limitDigits(digits int) {
	if digits > maxNumberDigits {
		w.problem = fmt.Sprintf("a number of %d digits, the limit is %d", digits, maxNumberDigits)
	}
}

func (w *walk) exponent() {
	w.at++
	if c := w.document[w.at]; c == '+' || c == '-' {
		w.at++
	}
	exponent, begin := 0, w.at
	for ; w.at < len(w.document) && w.document[w.at] >= '0' && w.document[w.at] <= '9'; w.at++ {
		exponent = min(exponent*10+int(w.document[w.at]-'0'), maxExponent+1)
	}
	w.limitDigits(w.at - begin)
	if exponent > maxExponent {
		w.problem = fmt.Sprintf("a number with an exponent beyond %d", maxExponent)
	}
}
