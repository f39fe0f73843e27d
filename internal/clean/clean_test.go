package clean

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// faults lists what a cleaned text must not be.
func faults(text string) []string {
	var found []string
	if !utf8.ValidString(text) {
		found = append(found, "not valid UTF-8")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		found = append(found, "a control character")
	}
	if n := utf8.RuneCountInString(text); n > MaxRunes {
		found = append(found, fmt.Sprintf("%d runes", n))
	}
	if again := Text(text); again != text {
		found = append(found, fmt.Sprintf("cleaned again it is %q", again))
	}
	return found
}

// What somebody wrote into the database must not speak to the terminal of whoever looks at it.
func TestNothingSpeaksToATerminal(t *testing.T) {
	t.Parallel()
	hostile := "a\x1b[31mb\x1b]0;title\x07c\u009b2Jd\u202ee\x00f\rg\x7fh\xffi"
	for want, text := range map[string]string{
		"plain, naïve 日本":                 "plain, naïve 日本",
		"ab]0;titlecdef gh\uFFFDi":        hostile,
		"two lines":                       "two\nlines",
		`"quoted" and https://u:p@x stay`: `"quoted" and https://u:p@x stay`,
	} {
		if got := Line(text); got != want {
			t.Errorf("Line(%q) is %q, want %q", text, got, want)
		}
	}
	var out strings.Builder
	written, err := Writer(&out).Write([]byte("one\ttab\n" + hostile + "\n"))
	if want := "one\ttab\nab]0;titlecdefgh\uFFFDi\n"; out.String() != want || err != nil ||
		written != len("one\ttab\n"+hostile+"\n") {
		t.Errorf("%d bytes, %q, %v, want %q", written, out.String(), err, want)
	}
}

func TestCleanKeepsWhatAnOperatorNeeds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "",
		"nats: no responders": "nats: no responders",
		"dial tcp 10.0.0.7:4222: connect: connection refused": "dial tcp 10.0.0.7:4222: connect: connection refused",
		"two\nlines\tand a tab":                               "two lines and a tab",
		"naïve Ωmega 日本 🙂":                                    "naïve Ωmega 日本 🙂",
		`ERROR: relation "outbox_events" does not exist (SQLSTATE 42P01)`: `ERROR: relation "outbox_events" does not exist ` +
			`(SQLSTATE 42P01)`,
		`duplicate key value violates unique constraint "orders_pkey" (SQLSTATE 23505)`: `duplicate key value violates ` +
			`unique constraint "orders_pkey" (SQLSTATE 23505)`,
		`rpc error: code = NotFound desc = Resource not found (resource=pf-domain-events).`: `rpc error: code = NotFound ` +
			`desc = Resource not found (resource=pf-domain-events).`,
		`stream "ORDERS" not found`:      `stream "ORDERS" not found`,
		`stream "alice smith" not found`: `stream "***" not found`,
		"cannot connect to https://broker.example:8443/v1 in 5s": "cannot connect to " +
			"https://broker.example:8443/v1 in 5s",
		"cannot connect to amqp://guest:guest@10.0.0.7:5672/ in 5s": "cannot connect to " +
			"amqp://***@10.0.0.7:5672/ in 5s",
		"the password is wrong, and the token has expired": "the password is wrong, and the token " +
			"has expired",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07text": "red ]0;titletext",
		"a\x00b\xffc\u009bd\u202ee":               "ab\uFFFDce",
		"ERROR: conflict DETAIL: Key (email)=(x) already exists. HINT: try again": "ERROR: conflict DETAIL: *** HINT: try " +
			"again",
		"Key (a, b)=(1, (x) y) conflicts with existing key": "Key (a, b)=(***) conflicts with " +
			"existing key",
		`invalid input value for enum status: "a"b"`: `invalid input value for enum status: "***"`,
		"host=db user=app password=hunter2 dbname=x": "host=db user=app password=*** dbname=x",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q\n became %q\n wanted %q", text, got, want)
		}
		for _, fault := range faults(Text(text)) {
			t.Errorf("%q: %s", text, fault)
		}
	}
}

func TestCleanBoundsTextAndWork(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"10 MB of words":       strings.Repeat("broken pipe ", 10<<20/12),
		"10 MB without spaces": strings.Repeat("x", 10<<20),
		"10 MB of quotes":      strings.Repeat(`"`, 10<<20),
		"10 MB of escapes":     strings.Repeat("\x1b[", 5<<20),
		"10 MB of broken text": strings.Repeat("\xff", 10<<20),
		"10 MB of at signs":    strings.Repeat("a:b@", 10<<20/4),
		"one rune too many":    strings.Repeat("é", MaxRunes+1),
		"a rune at the cut":    strings.Repeat("x", maxInput-1) + "é tail",
	} {
		if n := len(bound(text)); n > maxInput+len("…") {
			t.Errorf("%s: %d bytes would be worked on", name, n)
		}
		for _, fault := range faults(Text(text)) {
			t.Errorf("%s: %s", name, fault)
		}
	}
	if got := Text(strings.Repeat("é", MaxRunes)); got != strings.Repeat("é", MaxRunes) {
		t.Error("a text at the limit was changed")
	}
	if got := Text(strings.Repeat("word ", 10_000)); utf8.RuneCountInString(got) != MaxRunes ||
		!strings.HasSuffix(got, "…") {
		t.Errorf("a long text ends with %q after %d runes", got[len(got)-10:], utf8.RuneCountInString(got))
	}
	// The cut goes through the password, where nothing says any more that it is one.
	if got := Text(strings.Repeat("\x00", maxInput-22) + " postgres://app:" + canary + "@db"); strings.Contains(got,
		canary[:4]) {
		t.Errorf("half a password is left: %q", got)
	}
}

type broken struct{ text *string }

func (b *broken) Error() string { return *b.text }

type wrapped struct{ err error }

func (w wrapped) Error() string { return "w: " + w.err.Error() }
func (w wrapped) Unwrap() error { return w.err }

func TestCleanNeverPanics(t *testing.T) {
	t.Parallel()
	if got := Error(nil); got != "" {
		t.Errorf("no error is %q", got)
	}
	var none *broken
	for _, err := range []error{none, &broken{}, fmt.Errorf("around: %w", &wrapped{})} {
		if got := Error(err); got == "" {
			t.Error("an error that panics says nothing")
		}
	}
	nested := errors.New("the cause")
	for range 10_000 {
		nested = wrapped{nested}
	}
	for _, fault := range faults(Error(nested)) {
		t.Error(fault)
	}
}

const canary = "CaNaRy7f3aQx"

// A leak is a text with a secret in it. The parts around the secret are what an attacker or chance may
// have put there, as far as the form allows it.
type leak struct {
	name string
	text func(before, after string) string
}

// leaks are the forms that a secret comes in.
func leaks() []leak {
	quoteless := func(s string) string { return strings.NewReplacer(`"`, "", `\`, "").Replace(s) }
	wordless := strings.NewReplacer(" ", "", "\t", "", "\n", "", "\v", "", "\f", "", "\r", "", "\u0085", "", "\u00a0", "")
	return []leak{
		{"URL", func(a, b string) string {
			return "postgres://app:" + url.PathEscape(a) + canary + url.PathEscape(b) + "@db/x"
		}},
		{"URL, user", func(a, b string) string { return "amqps://" + url.PathEscape(a) + canary + "@host:5671" }},
		{"DSN", func(a, b string) string { return "app:" + canary + url.QueryEscape(a) + "@tcp(10.0.0.7:3306)/x" }},
		{"keyword", func(a, b string) string {
			return "host=db password=" + url.QueryEscape(a) + canary + url.QueryEscape(b) + " user=app"
		}},
		{"quoted keyword", func(a, b string) string {
			return "sslpassword = '" + strings.NewReplacer("'", "", `\`, "").Replace(a) + canary + "' user=app"
		}},
		{"JSON", func(a, b string) string { return fmt.Sprintf(`{"client_secret": %q, "a": 1}`, a+canary+b) }},
		{"query", func(a, b string) string { return "GET /x?api_key=" + url.QueryEscape(a) + canary + "&y=1" }},
		{"bearer", func(a, b string) string { return "Authorization: Bearer " + url.QueryEscape(a) + canary }},
		{"bearer alone", func(a, b string) string { return "sent bearer " + canary + url.QueryEscape(b) }},
		{"header", func(a, b string) string { return "X-Api-Key: " + canary + url.QueryEscape(b) }},
		{"JWT", func(a, b string) string { return "eyJhbGciOiJIUzI1NiJ9." + canary + ".x" }},
		{"e-mail", func(a, b string) string { return canary + "@example.com" }},
		{"e-mail, domain", func(a, b string) string { return "<someone@" + canary + ".example>" }},
		{"key detail", func(a, b string) string { return "DETAIL:  Key (name)=(" + a + canary + b + ") already exists." }},
		{"key", func(a, b string) string { return "Key (name)=(" + a + canary + b + ") already exists." }},
		{"row", func(a, b string) string { return "Failing row contains (1, " + a + canary + b + ", null)." }},
		{"enum", func(a, b string) string { return `invalid input value for enum status: "` + a + canary + b + `"` }},
		{"integer", func(a, b string) string { return `invalid input syntax for type integer: "` + a + canary + b + `"` }},
		{"parse", func(a, b string) string {
			return fmt.Sprintf("strconv.ParseInt: parsing %q: invalid syntax", a+canary+b)
		}},
		{"quoted", func(a, b string) string { return `no customer "` + quoteless(a) + canary + quoteless(b) + `" here` }},
		{"SQL value", func(a, b string) string {
			return "duplicate entry '" + strings.ReplaceAll(a, "'", "") + canary + "' for key"
		}},
		{"German", func(a, b string) string { return "ungültige Eingabe für Typ integer: »" + canary + "«" }},
		{"private key", func(a, b string) string {
			return "-----BEGIN RSA PRIVATE KEY-----\nMII" + wordless.Replace(a) + canary
		}},
	}
}

func TestRedactTakesOutSecrets(t *testing.T) {
	t.Parallel()
	for _, l := range leaks() {
		for _, around := range []string{
			"", "x", "a b", `"`, `\`, ")", "'", "@", "\x00", "\x1b[0m", "=", "Bearer ", "é", "://",
		} {
			text := l.text(around, around)
			if !strings.Contains(text, canary) {
				t.Fatalf("%s has no canary: %q", l.name, text)
			}
			if got := Text("publish: " + text + " and so on"); strings.Contains(got, canary) {
				t.Errorf("%s: %q became %q", l.name, text, got)
			}
		}
	}
}

func FuzzSanitizeError(f *testing.F) {
	for _, seed := range []string{
		"", "connection refused", "\x00\x01\x7f\u0080\u009f", "\xff\xfe", "\x1b[31mred", "\x1b]0;x", "\u202e\u200b",
		strings.Repeat("é", 2049),
		strings.Repeat("a:b@ ", 2000), `""""`, "'''", "Key (a)=(b", "password=password=x", "«»«»", "-----BEGIN X-----", `"\`,
		"***", "@@@", "a@b@c",
	} {
		f.Add(seed)
	}
	for _, l := range leaks() {
		f.Add(l.text("a b", `"'`))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, fault := range faults(Error(errors.New(text))) {
			t.Errorf("%q: %s", text, fault)
		}
	})
}

func FuzzRedact(f *testing.F) {
	for i := range leaks() {
		f.Add(uint8(i), "publish failed ", " after 3s", "a b", "c")
		f.Add(uint8(i), "", "", `"`, "'")
		f.Add(uint8(i), "", `" and "`, ")", "(")
	}
	// What stands before the secret may not pretend that the form begins elsewhere: nobody can tell the
	// quotes of one value from those of the next. The letter ends an escape sequence that would eat into it.
	plain := strings.NewReplacer(`"`, "", "'", "", "=", "", ":", "", "“", "", "„", "", "«", "", "»", "", "‚", "", "‘",
		"", `\`, "")
	f.Fuzz(func(t *testing.T, kind uint8, before, behind, a, b string) {
		all := leaks()
		l := all[int(kind)%len(all)]
		if strings.Contains(before+behind+a+b, canary) {
			t.Skip("the canary is elsewhere as well")
		}
		text := strings.ToValidUTF8(plain.Replace(before), "") + "x " + l.text(a, b) + " " + behind
		if got := Text(text); strings.Contains(got, canary) {
			t.Errorf("%s: %q became %q", l.name, text, got)
		}
	})
}
