package registryfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A payload may take stepsFree visits of a schema's parts and stepsPerByte for each byte. Steps and not time:
// what becomes of an event must not depend on how busy the machine is.
const (
	stepsFree    = 100_000
	stepsPerByte = 4
)

// A checker holds payloads to a schema.
type checker struct {
	schemas *folder
	address string
	free    chan *validator // compiled and not in use
}

// A validator is one compiled copy of the schema. It counts its steps, so that it serves one check at a time.
type validator struct {
	schema *jsonschema.Schema
	left   int
}

// errTooLong leaves the validator from within.
var errTooLong = errors.New("takes too many steps to check")

// Validate is called for every part of the schema that a value is held to.
func (v *validator) Validate(*jsonschema.ValidatorContext, any) {
	if v.left--; v.left < 0 {
		panic(errTooLong)
	}
}

func newChecker(schemas *folder, address string) (*checker, error) {
	c := &checker{schemas: schemas, address: address, free: make(chan *validator, 2*runtime.GOMAXPROCS(0))}
	compiled, err := c.compile()
	if err != nil {
		return nil, err
	}
	c.free <- compiled
	return c, nil
}

// compile makes a validator. It survives a schema that the library does not.
func (c *checker) compile() (v *validator, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			v, err = nil, fmt.Errorf("cannot be compiled: %v", cause)
		}
	}()
	v = new(validator)
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(c.schemas)
	compiler.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     scheme + ":///.steps",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return v, nil },
	})
	compiler.AssertVocabs()
	v.schema, err = compiler.Compile(c.address)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "jsonschema "), scheme+":///", ""))
	}
	return v, nil
}

// check is the contract's Validate.
func (c *checker) check(data json.RawMessage) (err error) {
	v, err := c.take()
	if err != nil {
		return err
	}
	defer c.put(v)
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case errTooLong:
			err = errTooLong
		default:
			err = errors.New("the schema's validator panicked") // what it said may quote the data
		}
	}()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return errors.New("not JSON")
	}
	v.left = stepsFree + stepsPerByte*len(data)
	var broken *jsonschema.ValidationError
	if err := v.schema.Validate(document); errors.As(err, &broken) {
		return errors.New(c.explain(broken, document))
	} else if err != nil {
		return errors.New("breaks the schema")
	}
	return nil
}

func (c *checker) take() (*validator, error) {
	select {
	case v := <-c.free:
		return v, nil
	default:
		return c.compile()
	}
}

func (c *checker) put(v *validator) {
	select {
	case c.free <- v:
	default: // enough of them
	}
}

// maxRules is how many broken rules are named.
const maxRules = 3

// explain names the places and the rules that are broken. Neither values nor names that are the payload's own.
func (c *checker) explain(broken *jsonschema.ValidationError, document any) string {
	var rules []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(rules) >= 100 {
			return
		}
		if len(e.Causes) == 0 {
			rules = append(rules, c.pointer(e.InstanceLocation, document)+": "+rule(e.ErrorKind))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(broken)
	slices.Sort(rules)
	rules = slices.Compact(rules)
	if len(rules) > maxRules {
		rules = append(rules[:maxRules], "and more")
	}
	return strings.Join(rules, "; ")
}

// pointer is a JSON pointer into the payload. A name that the schema does not have is the payload's own, and
// stays there.
func (c *checker) pointer(tokens []string, document any) string {
	var pointer strings.Builder
	for _, token := range tokens {
		switch at := document.(type) {
		case map[string]any:
			document = at[token]
			if !c.schemas.properties[token] {
				token = "*"
			}
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(at) {
				document = at[i]
			}
		}
		pointer.WriteString("/" + token)
	}
	if pointer.Len() == 0 {
		return "/"
	}
	return pointer.String()
}

// rule says which keyword of the schema is broken, with what the schema wants where that is short.
func rule(broken jsonschema.ErrorKind) string {
	switch broken := broken.(type) {
	case *kind.Required:
		return fmt.Sprintf("required: %.200s missing", strings.Join(broken.Missing, ", "))
	case *kind.Type:
		return fmt.Sprintf("type: got %s, want %s", broken.Got, strings.Join(broken.Want, " or "))
	case *kind.Format:
		return fmt.Sprintf("format: want %.80s", broken.Want)
	}
	if path := broken.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return "not allowed"
}
