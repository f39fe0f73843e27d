package inbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrRefused is what every refusal is: nothing was sent, and the transaction is as usable as before. It is a bug of the
// consumer or of whoever made the message; trying again does not help.
var ErrRefused = errors.New("inbox: refused")

// ErrNoTransaction is the refusal of [FirstGORM] and [NewerGORM] outside a transaction.
var ErrNoTransaction = fmt.Errorf("%w: not in a transaction: call it inside db.Transaction, with that transaction's "+
	"Statement.ConnPool", ErrRefused)

// MaxConsumerBytes is the limit of a consumer's name.
const MaxConsumerBytes = 64

// invalid makes an error of the problems; empty ones are none. It names sizes and limits and never a value.
func invalid(name string, problems []string) error {
	var found []string
	for _, problem := range problems {
		if problem != "" {
			found = append(found, problem)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrRefused, name, strings.Join(found, "; "))
}

func checkConsumer(name string) string {
	if name == "" {
		return "consumer: missing: give it a name that it keeps"
	}
	if len(name) > MaxConsumerBytes {
		return fmt.Sprintf("consumer: %d bytes, the limit is %d", len(name), MaxConsumerBytes)
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return "consumer: must be of a to z, 0 to 9, '.', '_' and '-'"
		}
	}
	return ""
}

func checkText(field, text string, limit int) string {
	switch {
	case text == "":
		return field + ": missing"
	case len(text) > limit:
		return fmt.Sprintf("%s: %d bytes, the limit is %d", field, len(text), limit)
	case !utf8.ValidString(text):
		return field + ": not valid UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return field + ": holds a control character"
	}
	return ""
}

// hint says what to do about the errors that a person meets.
func hint(err error, part string) string {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return ""
	}
	switch state.SQLState() {
	case "40001", "40P01":
		return "; another transaction was faster: roll back and run this one again"
	case "55P03":
		return "; another transaction is at the same event or aggregate: roll back, do not acknowledge, and let it come again"
	case "42P01", "3F000", "42883":
		return "; there is no inbox in this schema, or an old one: run 'outboxctl migrate up --inbox'"
	case "42501":
		return "; run 'outboxctl grant --inbox " + part + " ROLE'"
	case "25006":
		return "; this server only reads: connect to the primary"
	}
	return ""
}
