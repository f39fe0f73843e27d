package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/posthaste-dev/posthaste/daemon/internal/input"
)

// given is a value as a source has it: a text, or from YAML a list or a map.
type given struct {
	text   string
	list   []string
	pairs  map[string]string
	file   string // the secret is in this file
	source string
}

// A source has for each key what was given there.
type source map[string]given

// put takes a value. A source that has two values for one key does not say which it means.
func (s source) put(problems *problems, key string, value given) {
	if first, twice := s[key]; twice {
		problems.addf(value.source, key, "is also given by %s: give one of them", first.source)
		return
	}
	s[key] = value
}

// Load reads the configuration from a program's arguments (without its name) and environment, and from the
// file that --config or the variable CONFIG names. What is wrong is told all at once, as an [Error].
func (s Set) Load(args, environ []string) (*Values, error) {
	if wrong := s.check(); len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	var problems problems
	flags, named := s.readFlags(&problems, args)
	environment, variable := s.readEnvironment(&problems, environ)
	if named == "" {
		named = variable
	}
	file, understood := source{}, true
	if named != "" {
		file, understood = s.readFile(&problems, named)
	}
	values := &Values{set: s, args: args, environ: environ, entries: map[string]entry{}}
	for _, key := range s.Keys {
		d := key.described()
		values.entries[d.name] = d.resolve(&problems, flags, environment, file)
	}
	if understood {
		s.checkTogether(&problems, values)
	}
	if len(problems.found) > 0 {
		return nil, &Error{Problems: problems.found}
	}
	return values, nil
}

// checkTogether finds what is missing and what does not fit together. It says nothing of a key whose own value
// is wrong: what it would look at is the default.
func (s Set) checkTogether(problems *problems, values *Values) {
	broken := map[string]bool{}
	for _, problem := range problems.found {
		broken[problem.Key] = true
	}
	for _, key := range s.Keys {
		if d := key.described(); d.required && !values.IsSet(key) && !broken[d.name] {
			problems.addf("", d.name, "is missing: set %s", s.ways(d))
		}
	}
	if s.Check == nil {
		return
	}
	for _, problem := range s.Check(values) {
		if problem.Key == "" || !broken[problem.Key] {
			problems.addf(problem.Source, problem.Key, "%s", problem.Text)
		}
	}
}

// ways says how a key can be set.
func (s Set) ways(d *definition) string {
	ways := s.variable(d.name)
	if d.kind == secretKind {
		return ways + ", " + ways + "_FILE, or " + d.name + " in the file"
	}
	return ways + ", " + flag(d.name) + ", or " + d.name + " in the file"
}

// resolve takes the value of the strongest source that has one.
func (d *definition) resolve(problems *problems, sources ...source) entry {
	for _, source := range sources {
		value, found := source[d.name]
		if !found {
			continue
		}
		if value.file != "" {
			secret, err := input.ReadFile(value.file, maxValueBytes)
			if err != nil {
				problems.addf(value.source, d.name, "%v", err)
				return entry{d.standard, defaultSource}
			}
			value.text = strings.TrimRight(string(secret), "\r\n")
		}
		parsed, err := d.parse(value)
		if err == nil {
			err = d.check(parsed)
		}
		if err != nil {
			problems.addf(value.source, d.name, "%s", d.complaint(value, err))
			return entry{d.standard, defaultSource}
		}
		return entry{parsed, value.source}
	}
	return entry{d.standard, defaultSource}
}

// complaint quotes the value, unless it is a secret.
func (d *definition) complaint(value given, err error) string {
	switch {
	case d.kind == secretKind:
		return scrub(err.Error(), value.text)
	case value.list != nil || value.pairs != nil || value.text == "":
		return err.Error()
	default:
		return fmt.Sprintf("%.80q: %v", value.text, err)
	}
}

// Reload reads everything again, from the same arguments and environment, and says which keys have another
// value now. The values it was called on stay as they are.
func (v *Values) Reload() (now *Values, changed []string, err error) {
	now, err = v.set.Load(v.args, v.environ)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range v.set.Keys {
		if !reflect.DeepEqual(v.entries[key.Name()].value, now.entries[key.Name()].value) {
			changed = append(changed, key.Name())
		}
	}
	return now, changed, nil
}
