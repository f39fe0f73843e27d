package clean

import (
	"regexp"
	"strings"
)

// escapes are the sequences that colour a terminal and move its cursor. Others lose their ESC alone, as any
// control character: taking more could take the beginning of what the rules look for.
var escapes = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-9;?]*[A-Za-z]?`)

// secretKeys are names of settings, headers and fields whose value is not for others.
const secretKeys = `pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|authorization|cookie|signature` +
	`|(?:api|access|private|account|shared|encryption|signing)[ _-]?key`

// A rule takes out one kind of secret. They run in this order: those that know where the secret ends
// come before those that take whatever follows.
type rule struct {
	needs   string // it can apply only where one of these characters is; empty: anywhere
	pattern *regexp.Regexp
	by      string
}

var rules = []rule{
	// A private key.
	{"-", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|$)`), mark},
	// user:password@ in a URL or DSN. The password may hold another @, so it ends at the last one.
	{"@", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*@`), "${1}" + mark + "@"},
	{"@", regexp.MustCompile(`(^|[\s"'(=,;])[^\s"'(=,;:@/]+:[^\s/]\S*@`), "${1}" + mark + "@"},
	// password=..., "apiKey": "...", Authorization: Bearer ...; with a quoted value to its end. A value
	// that is named like a key (token=password=x) is a key still.
	{"=:", regexp.MustCompile(`(?i)((?:` + secretKeys + `)[\w.-]*["']?\s*(?:=>|:=|[=:])\s*)+` +
		`(?:(?:bearer|basic|digest|negotiate|token)\s+)?` +
		`(?:\\?"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)?\S*`), "${1}" + mark},
	{"", regexp.MustCompile(`(?i)\b(bearer|basic|digest|negotiate)\s+\S+`), "${1} " + mark},
	// Tokens that are known by their looks.
	{
		"",
		regexp.MustCompile(`\beyJ[\w-]{8,}(?:\.[\w-]*)*|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bgh[pousr]_\w{16,}|` +
			`\bgithub_pat_\w{16,}` +
			`|\b[sr]k[-_](?:live|test|proj)?[-_]?\w{16,}|\bxox[a-z]-[\w-]{8,}|\bAIza[\w-]{30,}|\bya29\.[\w.-]{8,}`), mark,
	},
	// E-mail addresses, in any script.
	{"@", regexp.MustCompile(`[^\s@<>()"“”,;:=/*]+@[^\s@<>()"'“”,;:/*]+`), mark},
	// What PostgreSQL adds to an error quotes rows, keys and statements.
	{
		":", regexp.MustCompile(`\b(DETAIL|Detail|CONTEXT|Context|STATEMENT|QUERY|WHERE):.*?(\sHINT:|$)`),
		"${1}: " + mark + "${2}",
	},
	{"=", regexp.MustCompile(`\)=\((?:.*\)|.*$)`), ")=(" + mark + ")"},
	{"(", regexp.MustCompile(`(?i)(row contains \()(?:.*\)|.*$)`), "${1}" + mark + ")"},
	// A value that was not understood, which may hold quotes itself: to the last one.
	{
		`"`, regexp.MustCompile(`(?i)(\b(?:invalid|malformed|parsing|syntax|literal|out of range)\b[^"]*)"(?:.*"|.*$)`),
		`${1}"` + mark + `"`,
	},
	// Values in other quotes: SQL's, and those of PostgreSQL in other languages.
	{"'", regexp.MustCompile(`(^|[\s(\[{=:,])'[^']*(?:'|$)`), "${1}'" + mark + "'"},
	{"“„«»‚‘", regexp.MustCompile(`[“„«»‚‘][^“”«»‘’]*(?:[“”«»‘’]|$)`), "“" + mark + "”"},
}

// quoted is what stands in double quotes, with Go's and JSON's escapes.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|\\?$)`)

// named are the words behind which a quoted text is a name from the schema or the broker's set-up, which
// an operator needs, and which is neither data nor secret.
var named = regexp.MustCompile(`(?i)\b(?:relation|table|column|constraint|index|function|procedure|operator|type|` +
	`schema|database|sequence|` +
	`role|parameter|extension|view|trigger|topic|subscription|subject|stream|consumer|queue|exchange|vhost|bucket|group|` +
	`partition|cluster|project) $`)

// plainName is a name as the above are; anything else in quotes is data all the same.
var plainName = regexp.MustCompile(`^"[\w./$-]{1,256}"$`)

// quotes takes out what stands in double quotes, names excepted.
func quotes(text string) string {
	var cleaned strings.Builder
	end := 0
	for _, found := range quoted.FindAllStringIndex(text, -1) {
		before, value := text[end:found[0]], text[found[0]:found[1]]
		cleaned.WriteString(before)
		if named.MatchString(before) && plainName.MatchString(value) {
			cleaned.WriteString(value)
		} else {
			cleaned.WriteString(`"` + mark + `"`)
		}
		end = found[1]
	}
	return cleaned.String() + text[end:]
}
