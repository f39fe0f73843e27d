package config

import (
	"fmt"
	"strings"
	"time"
)

// Markdown is the reference page of the set: every key by group, and the aliases. The title and what else
// there is to say about the program come before it.
func (s Set) Markdown() string {
	var page strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&page, format, args...) }
	write("A value comes from a flag, else from the environment, else from the file, else it is the default. The\n")
	write("file is YAML, named by `--config` or `%s`; a key's name is its path there. `relay.batch` would be the\n",
		s.variable(configName))
	write("variable `%s` and the flag `%s`. What is not known is refused, and so is a value under two\n",
		s.variable("relay.batch"), flag("relay.batch"))
	write("names of one source.\n\n")
	write("A secret has no flag. It may be in a file of its own, named by the variable with `_FILE` at its end, the " +
		"flag\n")
	write("with `-file`, or the key with `_file`; a newline at its end is not part of it.\n\n")
	write("| kind | looks like |\n|---|---|\n")
	for _, row := range [][2]string{
		{"text", "anything in one line; empty is a value"},
		{"secret", "a text; of a URL the scheme, the host and the database are shown, of others nothing"},
		{"duration", "`500ms`, `30s`, `5m`, `1h30m`"},
		{"integer", "`500`"},
		{"size", "bytes: `65536`, `64KiB`, `10MB`"},
		{"boolean", "`true` or `false`; the flag alone is `true`"},
		{"choice", "one of the words named"},
		{"list", "a YAML list, or `a,b`"},
		{"map", "a YAML map, or `a=b,c=d`"},
	} {
		write("| %s | %s |\n", row[0], row[1])
	}
	group := ""
	for _, key := range s.Keys {
		d := key.described()
		if first, _, _ := strings.Cut(d.name, "."); first != group {
			group = first
			write("\n## %s\n\n| key | kind | default | what it is |\n|---|---|---|---|\n", group)
		}
		write("| `%s` | %s | %s | %s |\n", d.name, d.kindInWords(), s.defaultInWords(d), d.docInWords())
	}
	if len(s.Aliases) > 0 {
		write("\n## Other names\n\n| variable | sets |\n|---|---|\n")
		for _, alias := range s.Aliases {
			write("| `%s` | `%s`%s |\n", alias.Variable, alias.Key, unitInWords(alias.Unit))
		}
	}
	return page.String()
}

func (d *definition) kindInWords() string {
	if len(d.options) == 0 {
		return string(d.kind)
	}
	return "`" + strings.Join(d.options, "`, `") + "`"
}

func (s Set) defaultInWords(d *definition) string {
	own, has := s.Defaults[d.name]
	switch {
	case has:
		return "`" + cell(own) + "`"
	case d.required:
		return "required"
	case d.zero && d.otherwise != "":
		return cell(d.otherwise)
	case d.show(d.standard) == "":
		return "none"
	default:
		return "`" + cell(d.show(d.standard)) + "`"
	}
}

func (d *definition) docInWords() string {
	if d.example == "" {
		return cell(d.doc)
	}
	return cell(d.doc) + " For instance `" + cell(d.example) + "`."
}

// cell makes a text fit for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

func unitInWords(unit time.Duration) string {
	if unit == 0 {
		return ""
	}
	return ", a bare number in units of " + showDuration(unit)
}
