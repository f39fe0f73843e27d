package registryfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/internal/suggest"
	"github.com/posthaste-dev/posthaste/outbox"
)

// fields are the keys of a contract.
var fields = []string{"type", "version", "aggregate", "topic", "on_dead", "max_attempts", "schema"}

// contract takes one contract of the list.
func (r *reader) contract(index int, node *yaml.Node) {
	contract := outbox.Contract{Topic: r.options.DefaultTopic}
	before := len(r.problems)
	var address string
	for key, value := range pairs(node) {
		if key.Value == "schema" {
			var err error
			if address, err = r.schema(&contract, index, value); err != nil {
				r.invalidf(value.Line, "%.80q: schema: %v", contract.Type, err)
			}
			continue
		}
		if value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			r.invalidf(value.Line, "%.80s: must be one value", key.Value)
			continue
		}
		if err := setField(&contract, key.Value, value.Value); err != nil {
			r.invalidf(value.Line, "%v", err)
		}
	}
	if first, twice := r.lines[contract.Type]; twice {
		r.invalidf(node.Line, "%.80q is defined twice, first in line %d: a type has exactly one contract",
			contract.Type, first)
	}
	r.lines[contract.Type] = node.Line
	if address != "" {
		r.addresses[contract.Type] = address
	}
	defined := outbox.Define[json.RawMessage](contract)
	var wrong *outbox.RegistryError
	if _, err := outbox.NewRegistry(defined); errors.As(err, &wrong) && len(r.problems) == before {
		for _, problem := range wrong.Problems {
			_, problem, _ = strings.Cut(problem, "): ") // behind the number in a list of one
			r.invalidf(node.Line, "%.80q: %s", contract.Type, problem)
		}
	}
	r.contracts = append(r.contracts, defined)
}

func setField(contract *outbox.Contract, name, text string) (err error) {
	switch name {
	case "type":
		contract.Type = text
	case "aggregate":
		contract.Aggregate = text
	case "topic":
		contract.Topic = text
	case "version":
		contract.Version, err = number(name, text, 1)
	case "max_attempts":
		contract.MaxAttempts, err = number(name, text, 1)
	case "on_dead":
		switch text {
		case "skip":
			contract.OnDead = outbox.OnDeadSkip
		case "block":
			contract.OnDead = outbox.OnDeadBlock
		default:
			return errors.New("on_dead: must be skip or block")
		}
	default:
		return fmt.Errorf("%.80q is not known%s", name, suggest.DidYouMean(name, fields))
	}
	return err
}

func number(name, text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < least || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s: must be a whole number from %d to %d", name, least, math.MaxInt32)
	}
	return n, nil
}

// schema gives the contract the check of its payload, and tells where the schema is.
func (r *reader) schema(contract *outbox.Contract, index int, node *yaml.Node) (address string, err error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" && node.Value != "":
		address, err = r.schemas.file(node.Value)
	case node.Kind == yaml.MappingNode:
		address, err = r.schemas.inline(index, node)
	default:
		err = errors.New("must be a JSON Schema or the name of a file")
	}
	if err != nil {
		return "", err
	}
	checker, err := newChecker(r.schemas, address)
	if err != nil {
		return "", err
	}
	contract.Validate = checker.check
	return address, nil
}
