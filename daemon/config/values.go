package config

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Values is a configuration that was accepted. It never changes.
type Values struct {
	set     Set
	entries map[string]entry
}

type entry struct {
	value  any
	source string
	file   string // the secret's own
}

const defaultSource = "default"

// A Row is a key as [Values.Show] shows it.
type Row struct {
	Name, Value, Source string
}

// Rows lists every key with its value, secrets redacted, and where it came from.
func (v *Values) Rows() []Row {
	rows := make([]Row, 0, len(v.set.Keys))
	for _, key := range v.set.Keys {
		d, entry := key.described(), v.entries[key.Name()]
		row := Row{Name: d.name, Value: d.show(entry.value), Source: entry.source}
		if entry.source == defaultSource && d.zero && d.otherwise != "" {
			row.Value = "(" + d.otherwise + ")"
		}
		rows = append(rows, row)
	}
	return rows
}

// Show is the rows as a table for people.
func (v *Values) Show() string {
	var table strings.Builder
	writer := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, row := range v.Rows() {
		_, _ = fmt.Fprintf(writer, "%s\t%s\t%s\n", row.Name, row.Value, row.Source) // a Builder takes everything
	}
	_ = writer.Flush()
	return table.String()
}

// Source says where a key's value came from.
func (v *Values) Source(key AnyKey) string { return v.entries[key.Name()].source }

// SecretFiles are the files that hold secrets, by the secret's key.
func (v *Values) SecretFiles() map[string]string {
	files := map[string]string{}
	for name, entry := range v.entries {
		if entry.file != "" {
			files[name] = entry.file
		}
	}
	return files
}

// IsSet tells whether the value is not the default.
func (v *Values) IsSet(key AnyKey) bool { return v.Source(key) != defaultSource }

// Problem is what is wrong with a key's value beside others, for [Set.Check]. The text must not quote a secret.
func (v *Values) Problem(key AnyKey, format string, args ...any) Problem {
	problem := Problem{Key: key.Name(), Text: fmt.Sprintf(format, args...)}
	if v.IsSet(key) {
		problem.Source = v.Source(key)
	}
	return problem
}
