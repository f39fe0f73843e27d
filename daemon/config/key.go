package config

import (
	"fmt"
	"time"
)

// Spec is what there is to say about a key besides its name.
type Spec[T any] struct {
	// Doc is one or two sentences for the reference page.
	Doc string
	// Default is the value where no source has one.
	Default T
	// Otherwise says in words what the zero default means, for instance "a third of relay.lease".
	Otherwise string
	// Example is a value as the environment has it.
	Example string
	// Required refuses a configuration without the key.
	Required bool
	// Check refuses a value, with a sentence that does not quote it. A default of zero is not checked.
	Check func(T) error
}

// A Key is one value that can be configured. Make one with [Text], [Secret], [Duration], [Integer], [Size],
// [Boolean], [Choice], [List] or [Map].
type Key[T any] struct {
	definition *definition
}

// AnyKey is a [Key] of any type.
type AnyKey interface {
	// Name is the key's name, for instance "relay.batch".
	Name() string
	described() *definition
}

// definition is a key without its type.
type definition struct {
	name      string
	kind      kind
	doc       string
	otherwise string
	example   string
	options   []string
	required  bool
	standard  any
	zero      bool // the default is the zero value
	parse     func(given) (any, error)
	check     func(any) error
	show      func(any) string
}

// kind is a kind of value, in the words of the reference page.
type kind string

const (
	textKind     kind = "text"
	secretKind   kind = "secret"
	durationKind kind = "duration"
	integerKind  kind = "integer"
	sizeKind     kind = "size"
	booleanKind  kind = "boolean"
	choiceKind   kind = "choice"
	listKind     kind = "list"
	mapKind      kind = "map"
)

// Text is a line of text. Empty is a value.
func Text(name string, spec Spec[string]) Key[string] {
	return define(name, textKind, spec, parseText, func(text string) string { return text })
}

// Secret is a text that is never shown.
func Secret(name string, spec Spec[Hidden]) Key[Hidden] {
	return define(name, secretKind, spec, parseSecret, Hidden.String)
}

// Duration is a time as Go writes it: 500ms, 30s, 1h30m.
func Duration(name string, spec Spec[time.Duration]) Key[time.Duration] {
	return define(name, durationKind, spec, parseDuration, showDuration)
}

// Integer is a whole number.
func Integer(name string, spec Spec[int]) Key[int] {
	return define(name, integerKind, spec, parseInteger, func(n int) string { return fmt.Sprint(n) })
}

// Size is a number of bytes: 65536, 64KiB, 10MB.
func Size(name string, spec Spec[int]) Key[int] {
	return define(name, sizeKind, spec, parseSize, showSize)
}

// Boolean is true or false.
func Boolean(name string, spec Spec[bool]) Key[bool] {
	return define(name, booleanKind, spec, parseBoolean, func(on bool) string { return fmt.Sprint(on) })
}

// Choice is one of a few words.
func Choice(name string, options []string, spec Spec[string]) Key[string] {
	key := define(name, choiceKind, spec, parseChoice(options), func(word string) string { return word })
	key.definition.options = options
	return key
}

// List is some words: a YAML list, or a text with commas. The slice is shared and must not be changed.
func List(name string, spec Spec[[]string]) Key[[]string] {
	return define(name, listKind, spec, parseList, showList)
}

// Map is some names with values: a YAML map, or a text like a=b,c=d. The map is shared and must not be
// changed.
func Map(name string, spec Spec[map[string]string]) Key[map[string]string] {
	return define(name, mapKind, spec, parseMap, showMap)
}

func define[T any](name string, kind kind, spec Spec[T], parse func(given) (T, error), show func(T) string) Key[T] {
	var zero T
	return Key[T]{&definition{
		name: name, kind: kind, doc: spec.Doc, otherwise: spec.Otherwise, example: spec.Example, required: spec.Required,
		standard: spec.Default, zero: show(spec.Default) == show(zero),
		parse: func(raw given) (any, error) { return parse(raw) },
		check: func(value any) error {
			if spec.Check == nil {
				return nil
			}
			return spec.Check(value.(T)) //nolint:forcetypeassert // parse and the default are of this type
		},
		show: func(value any) string { return show(value.(T)) }, //nolint:forcetypeassert // as above
	}}
}

// Name is the key's name.
func (k Key[T]) Name() string { return k.definition.name }

// Get is the key's value. A key that the set does not have is a mistake of the program, and panics.
func (k Key[T]) Get(values *Values) T {
	entry, known := values.entries[k.definition.name]
	if !known {
		panic("config: the set has no key " + k.definition.name)
	}
	return entry.value.(T) //nolint:forcetypeassert // the key that made the value has this type
}

func (k Key[T]) described() *definition { return k.definition }

// Between is a check that a value is not below the one and not above the other.
func Between[T int | time.Duration](least, most T) func(T) error {
	return func(value T) error {
		if value < least || value > most {
			return fmt.Errorf("must be between %v and %v", least, most)
		}
		return nil
	}
}
