package contracts

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m, goroutines.Linked)) }

const root = "../../.."

// tool is the path of a pinned tool.
func tool(t *testing.T, name string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/tools"), name).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("%s: %s", name, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(said))
}

// check has AsyncAPI's parser say what is wrong with documents.
func check(t *testing.T, documents ...string) (wrong [][]string) {
	t.Helper()
	input, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", "testdata/validate.cjs", tool(t, "asyncapi-parser"))
	command.Stdin = bytes.NewReader(input)
	answer, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("node: %s", exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &wrong); err != nil || len(wrong) != len(documents) {
		t.Fatalf("%v: %s", err, answer)
	}
	return wrong
}

// load is the registry of a file, and its document.
func load(t *testing.T, name string) (*registryfile.File, contracts.Document) {
	t.Helper()
	file, err := registryfile.Load(name, registryfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	document, err := file.Contracts()
	if err != nil {
		t.Fatal(err)
	}
	return file, document
}

// odd is a registry with names and schemas that a document could stumble over.
func odd(t *testing.T) contracts.Document {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"registry.yaml": `
contracts:
  - {type: shop.order-created_v1, aggregate: order, topic: "projects/shop/topics/orders?#{eu}"}
  - {type: a, aggregate: order, topic: "projects/shop/topics/orders?#{us}", schema: draft7.json}
  - {type: b, aggregate: order, topic: orders.>, on_dead: block, max_attempts: 3, schema: {$ref: "tree.json"}}
  - type: c
    aggregate: order
    topic: orders.>
    schema:
      type: [object, "null"]
      properties: {"a/b~c": true, n: {exclusiveMinimum: 1e3}, none: false}
      prefixItems: [{const: 1}]
      dependentRequired: {n: [none]}
      unevaluatedProperties: false
`,
		"draft7.json": `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/a.json",` +
			`"definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}}}`,
		"tree.json": `{"type":"object","properties":{"trees":{"type":"array","items":{"$ref":"#"}},` +
			`"leaf":{"$ref":"leaf.json#/$defs/leaf"}}}`,
		"leaf.json": `{"$defs":{"leaf":{"type":"object","properties":{"tree":{"$ref":"tree.json"}}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, document := load(t, filepath.Join(folder, "registry.yaml"))
	return document
}

// TestAsyncAPIIsValid: by the parser of those who write the specification.
func TestAsyncAPIIsValid(t *testing.T) {
	t.Parallel()
	_, marketplace := load(t, filepath.Join(root, "examples/registry.yaml"))
	var names, texts []string
	for name, document := range map[string]contracts.Document{
		"marketplace": marketplace, "odd": odd(t), "nothing": {},
	} {
		text, err := document.AsyncAPI(contracts.AsyncAPI{
			Format: publish.CloudEvents, Formats: map[string]publish.Format{"orders.>": publish.Envelope}, Source: "/shop",
		})
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, name), append(texts, string(text))
	}
	for i, wrong := range check(t, texts...) {
		if len(wrong) > 0 {
			t.Errorf("%s: %s\n%s", names[i], strings.Join(wrong, "\n"), texts[i])
		}
	}
}

// TestAsyncAPIThatIsBroken: the parser can say no, to each part of the document.
func TestAsyncAPIThatIsBroken(t *testing.T) {
	t.Parallel()
	_, marketplace := load(t, filepath.Join(root, "examples/registry.yaml"))
	cash, _ := marketplace.Find("cash_collected")
	small := contracts.Document{Contracts: []contracts.Contract{cash}} // the parser takes seconds for many types
	text, err := small.AsyncAPI(contracts.AsyncAPI{})
	if err != nil {
		t.Fatal(err)
	}
	broken := []string{strings.TrimSuffix(string(text), "}\n")}
	for _, change := range [][2]string{
		{`"asyncapi": "3.0.0"`, `"asyncapi": "3"`},
		{`"title": "Events"`, `"titel": "Events"`},
		{`"address": "billing"`, `"address": 1`},
		{`"action": "send"`, `"action": "sned"`},
		{`"$ref": "#/channels/billing/messages/cash_collected"`, `"$ref": "#/components/messages/cash_collected"`},
		{`"$ref": "#/components/messages/cash_collected"`, `"$ref": "#/components/messages/none"`},
		{`"$ref": "#/components/schemas/cash_collected"`, `"$ref": "#/components/schemas/none"`},
		{`"headers": {`, `"headers": 1, "x-was": {`},
		{`"type": "integer"`, `"type": "number of cents"`},
		{`"required": [`, `"required": {}, "x-was": [`},
	} {
		changed := strings.Replace(string(text), change[0], change[1], 1)
		if changed == string(text) {
			t.Fatalf("there is no %s to break", change[0])
		}
		broken = append(broken, changed)
	}
	for i, wrong := range check(t, append(broken, string(text))...) {
		if whole := i == len(broken); (len(wrong) == 0) != whole {
			t.Errorf("document %d: found %q", i, wrong)
		}
	}
}

// TestAParserThatIsNotThePinnedOne is not unpacked: what npm brings is held to its sum.
func TestAParserThatIsNotThePinnedOne(t *testing.T) {
	t.Parallel()
	programs, tools := t.TempDir(), t.TempDir()
	npm := "#!/bin/sh\nmkdir -p package/browser\necho wrong >package/browser/index.js\n" +
		"tar --create --gzip --file asyncapi-parser-0.tgz package\nrm -r package\necho asyncapi-parser-0.tgz\n"
	if err := os.WriteFile(filepath.Join(programs, "npm"), []byte(npm), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/tools"), "asyncapi-parser")
	command.Env = append(slices.Clone(os.Environ()), "PATH="+programs+":"+os.Getenv("PATH"), "POSTHASTE_TOOLS_DIR="+tools)
	said, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "is not what scripts/tools.env pins") {
		t.Errorf("%v: %s", err, said)
	}
	found, err := filepath.Glob(filepath.Join(tools, "*", "*"))
	if err != nil || len(found) > 0 {
		t.Errorf("%v: it has left %v", err, found)
	}
}
