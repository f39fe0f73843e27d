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

// put takes a value. A source that has two values for one key does not say which it means, unless two names have the
// same.
func (s source) put(problems *problems, d *definition, value given) {
	first, twice := s[d.name]
	if !twice {
		s[d.name] = value
	} else if first.source == value.source || !d.same(first, value) {
		problems.addf(value.source, d.name, "is also given by %s: give one of them", first.source)
	}
}

// same tells whether two texts mean the same value, for instance under two names with different units.
func (d *definition) same(one, other given) bool {
	if d.kind == secretKind {
		return false
	}
	first, err := d.parse(one)
	second, err2 := d.parse(other)
	return err == nil && err2 == nil && reflect.DeepEqual(first, second)
}

// sources are the places that values come from.
type sources struct {
	flags, environment, file source
	understood               bool // the file could be read, or none is named
}

// readSources reads all of them, and tells for each what is wrong there.
func (s Set) readSources(args, environ []string, inFlags, inEnvironment, inFile *problems) sources {
	flags, named := s.readFlags(inFlags, args)
	environment, variable := s.readEnvironment(inEnvironment, environ)
	if named == "" {
		named = variable
	}
	found := sources{flags: flags, environment: environment, file: source{}, understood: true}
	if named != "" {
		found.file, found.understood = s.readFile(inFile, named)
	}
	return found
}

// Load reads the configuration from a program's arguments (without its name) and environment, and from the
// file that --config or the variable CONFIG names. What is wrong is told all at once, as an [Error].
func (s Set) Load(args, environ []string) (*Values, error) {
	if wrong := s.check(); len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	var problems problems
	found := s.readSources(args, environ, &problems, &problems, &problems)
	values := &Values{set: s, entries: map[string]entry{}}
	for _, key := range s.Keys {
		d := key.described()
		values.entries[d.name] = d.resolve(&problems, found.flags, found.environment, found.file, s.defaults())
	}
	if found.understood {
		s.checkTogether(&problems, values)
	}
	if len(problems.found) > 0 {
		return nil, &Error{Problems: problems.found}
	}
	return values, nil
}

// LoadOne reads one key, for a question to a program that runs already: what is wrong or missing elsewhere in the
// environment and in the file is not looked at. The values have no other key.
func (s Set) LoadOne(key AnyKey, args, environ []string) (*Values, error) {
	if wrong := s.check(); len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	var problems, others, inFile problems
	found := s.readSources(args, environ, &problems, &others, &inFile)
	d := key.described()
	values := &Values{set: s, entries: map[string]entry{
		d.name: d.resolve(&problems, found.flags, found.environment, found.file, s.defaults()),
	}}
	if _, given := found.flags[d.name]; !given && !found.understood {
		if _, given = found.environment[d.name]; !given { // what the file says is not known
			problems.found = append(problems.found, inFile.found...)
		}
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
		parsed, err := d.read(value)
		if err != nil {
			problems.addf(value.source, d.name, "%s", d.complaint(value, err))
			return entry{value: d.standard, source: defaultSource}
		}
		return entry{value: parsed, source: value.source, file: value.file}
	}
	return entry{value: d.standard, source: defaultSource}
}

// read understands what was given, and takes a secret from its file.
func (d *definition) read(value given) (any, error) {
	if value.file != "" {
		secret, err := input.ReadFile(value.file, maxValueBytes)
		if err != nil {
			return nil, err // it names the file
		}
		value.text = strings.TrimRight(string(secret), "\r\n")
	}
	parsed, err := d.parse(value)
	if err == nil {
		err = d.check(parsed)
	}
	if err != nil && d.kind == secretKind {
		return nil, errors.New(scrub(err.Error(), value.text))
	}
	return parsed, err
}

// complaint quotes the value, unless it is a secret.
func (d *definition) complaint(value given, err error) string {
	switch {
	case d.kind == secretKind: // read has taken it out
		return err.Error()
	case value.list != nil || value.pairs != nil || value.text == "":
		return err.Error()
	default:
		return fmt.Sprintf("%.80q: %v", value.text, err)
	}
}

// Current is a secret as its file has it now, for whoever connects with what may have been rotated. One that has
// no file of its own is as it was at the start.
func (v *Values) Current(key Key[Hidden]) (Hidden, error) {
	held := v.entries[key.Name()]
	if held.file == "" {
		return key.Get(v), nil
	}
	read, err := key.definition.read(given{file: held.file})
	if err != nil {
		return Hidden{}, fmt.Errorf("%s: %s: %w", held.source, key.Name(), err)
	}
	return read.(Hidden), nil //nolint:forcetypeassert // a secret's parse makes no other
}

// Changes names the keys that have another value now, after everything was loaded again. rotated are secrets in files
// of their own, which [Values.Current] shows.
func (v *Values) Changes(now *Values) (rotated, others []string) {
	for _, key := range v.set.Keys {
		before, after := v.entries[key.Name()], now.entries[key.Name()]
		switch {
		case reflect.DeepEqual(before.value, after.value):
		case before.file != "" && before.file == after.file:
			rotated = append(rotated, key.Name())
		default:
			others = append(others, key.Name())
		}
	}
	return rotated, others
}
