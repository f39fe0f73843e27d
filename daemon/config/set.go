package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Set is what a program can be configured with.
type Set struct {
	// Prefix is what the program's environment variables begin with. One that begins so and is not known is
	// refused.
	Prefix string
	// Keys are the keys, in the order of the reference page. What is before the first dot is their group.
	Keys []AnyKey
	// Aliases are further environment variables, under the names that a system already has.
	Aliases []Alias
	// Defaults are the program's own, as the environment would have them, in place of those of the keys.
	Defaults map[string]string
	// Ignored are variables that begin with the prefix and are somebody else's. What Kubernetes adds for a
	// service of this name (POSTHASTE_PORT, POSTHASTE_SERVICE_HOST) is ignored anyway.
	Ignored []string
	// Check looks at values together. It makes its problems with [Values.Problem].
	Check func(*Values) []Problem
}

// An Alias is another environment variable for a key.
type Alias struct {
	Variable string
	Key      string
	// Unit is what a number without a unit counts, for durations. Defaults to nothing: it is refused.
	Unit time.Duration
}

// configName is the one name that is not a key's: the file.
const configName = "config"

// fileSuffix makes the name of a secret the name of a file that holds it.
const fileSuffix = "_file"

// variable is the environment variable of a name.
func (s Set) variable(name string) string {
	return s.Prefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// flag is the flag of a name.
func flag(name string) string { return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(name) }

// A target is what a name stands for: a key, or the file that holds a key's secret.
type target struct {
	*definition
	file bool
	unit time.Duration // of an alias
}

// targets lists every name that a file may have. For a secret there are two.
func (s Set) targets() map[string]target {
	all := map[string]target{}
	for _, key := range s.Keys {
		d := key.described()
		all[d.name] = target{definition: d}
		if d.kind == secretKind {
			all[d.name+fileSuffix] = target{definition: d, file: true}
		}
	}
	return all
}

var keyName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)

// check says what is wrong with the set itself. These are mistakes of the program.
func (s Set) check() []error {
	var problems []error
	invalid := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("the set is wrong: "+format, args...))
	}
	variables := map[string]string{s.variable(configName): configName}
	for _, key := range s.Keys {
		d := key.described()
		if !keyName.MatchString(d.name) {
			invalid("%s is not a name", d.name)
		}
		if d.doc == "" {
			invalid("%s has no documentation", d.name)
		}
		for _, name := range slices.Sorted(keysOf(d)) {
			if other, taken := variables[s.variable(name)]; taken {
				invalid("%s and %s have the same variable", other, name)
			}
			variables[s.variable(name)] = name
		}
		if _, err := d.parse(given{text: d.example}); err != nil && d.example != "" {
			invalid("the example of %s: %w", d.name, err)
		}
		if err := d.check(d.standard); err != nil && !d.zero {
			invalid("the default of %s: %w", d.name, err)
		}
	}
	return append(problems, s.checkNames(variables)...)
}

// checkNames looks at what stands beside the keys: other names, and other defaults. It is told the variables that are
// taken.
func (s Set) checkNames(variables map[string]string) []error {
	var problems []error
	invalid := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("the set is wrong: "+format, args...))
	}
	targets := s.targets()
	for _, alias := range s.Aliases {
		if found, known := targets[alias.Key]; !known || found.file || alias.Unit != 0 && found.kind != durationKind {
			invalid("the alias %s is for %s, which is no key, or has no unit", alias.Variable, alias.Key)
		}
		if _, taken := variables[alias.Variable]; taken {
			invalid("the alias %s is there twice", alias.Variable)
		}
		variables[alias.Variable] = alias.Key
	}
	for name := range s.Defaults {
		if found, known := targets[name]; !known || found.file {
			invalid("there is a default for %s, which is no key", name)
		}
	}
	return problems
}

// programSource is where a program's own default comes from.
const programSource = "default of the program"

// defaults are the program's own, as the weakest source.
func (s Set) defaults() source {
	defaults := source{}
	for name, text := range s.Defaults {
		defaults[name] = given{text: text, source: programSource}
	}
	return defaults
}

// keysOf are the names of a key in a file.
func keysOf(d *definition) func(func(string) bool) {
	return func(yield func(string) bool) {
		if yield(d.name) && d.kind == secretKind {
			yield(d.name + fileSuffix)
		}
	}
}
