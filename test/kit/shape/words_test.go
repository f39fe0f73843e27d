package shape_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/shape"
)

// oldWords are the words that were found in the names of a file, in their order.
func oldWords(t *testing.T, file, text string) string {
	t.Helper()
	files := goodTree()
	maps.Copy(files, map[string]string{
		file: text, "relay/internal/core/store.go": "package core\n\ntype s interface{ SaveRoutes() }\n",
	})
	report := measure(t, files)
	var all []string
	for _, c := range report.Checks {
		if c.Name == "old_words" {
			for _, finding := range c.Findings {
				name, _, _ := strings.Cut(finding.Text, ":")
				all = append(all, name)
			}
		}
	}
	return strings.Join(all, " ")
}

// Go's names are found where they are declared, of every kind; what only looks like one is not.
func TestOldWordsInGo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, text, want string }{
		"a package":             {"b/b.go", "package calm\n", "calm"},
		"a type":                {"b.go", "package a\n\ntype world struct{}\n", "world"},
		"a field":               {"b.go", "package a\n\ntype t struct{ isBlind bool }\n", "isBlind"},
		"a type parameter":      {"b.go", "package a\n\ntype t[World any] struct{}\n", "World"},
		"a method":              {"b.go", "package a\n\nfunc (Event) Strike() {}\n", "Strike"},
		"an interface's method": {"b.go", "package a\n\ntype t interface{ Strike() }\n", "Strike"},
		"a parameter, a result": {"b.go", "package a\n\nfunc f(fate int) (refused bool) { return true }\n", "fate refused"},
		"with a format":         {"b.go", "package a\n\nfunc refusef(string) {}\n", "refusef"},
		"a receiver":            {"b.go", "package a\n\nfunc (eye Event) f() {}\n", "eye"},
		"locals": {
			"b.go", "package a\n\nfunc f() {\n\tvar fate int\n\tblow, x := 1, 2\n\tfor route := range 3 {\n\t}\n}\n",
			"fate blow route",
		},
		"a constant":          {"b.go", "package a\n\nconst HTTPStorm2 = 1\n", "HTTPStorm2"},
		"an import":           {"b.go", "package a\n\nimport storm \"io\"\n", "storm"},
		"a label":             {"b.go", "package a\n\nfunc f() {\nstorm:\n\tfor {\n\t\tbreak storm\n\t}\n}\n", "storm"},
		"two words":           {"b.go", "package a\n\nvar plantedWorld int\n", "plantedWorld plantedWorld"},
		"a use":               {"b.go", "package a\n\nimport \"io\"\n\nvar x = io.World\n", ""},
		"a comment, a string": {"b.go", "package a\n\n// world\nvar x = \"world\"\n", ""},
		"part of a word":      {"b.go", "package a\n\nvar worldly, fated, rigid, carefully int\n", ""},
		"a sentence": {
			"b_test.go", "package a\n\nfunc TestTheyAskAndTellAtHome() {}\nfunc TestItIsRefused() {}\n", "TestItIsRefused",
		},
		"a verb":          {"b.go", "package a\n\nfunc askTime() {}\nfunc mayAsk() {}\n", "askTime"},
		"a fixture":       {"b.go", "package a\n\ntype place struct{}\nfunc f(place int) {}\n", "place"},
		"what is allowed": {"b.go", "package a\n\nvar ErrRefused int\nvar errRefused int\n", "errRefused"},
		"the core":        {"relay/internal/core/b.go", "package core\n\nvar route int\n", ""},
		"the store":       {"relay/internal/pgstore/b.go", "package core\n\nvar route int\n", ""},
		"what the core demands": {
			"relay/internal/x/b.go", "package x\n\nfunc (T) SaveRoutes() {}\nfunc SaveRoutes() {}\n", "SaveRoutes",
		},
		"a test's file": {"test/b_test.go", "package a\n\nvar world int\n", "world"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := oldWords(t, test.file, test.text); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// SQL's names are found in statements and in bodies, quoted and not; comments and strings are no names.
func TestOldWordsInSQL(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, text, want string }{
		"a table":             {"b.sql", "CREATE TABLE outbox_home (id int);", "outbox_home"},
		"a column":            {"b.sql", "SELECT x.noted_by FROM {schema}.t x", "noted_by"},
		"an alias":            {"b.sql", "SELECT 1 AS route", "route"},
		"a function":          {"b.sql", "SELECT outbox_judge(1)", "outbox_judge"},
		"a table of a schema": {"b.sql", "SELECT FROM {schema}.outbox_routes", "outbox_routes"},
		"quoted":              {"b.sql", `SELECT "World"`, "World"},
		"a body": {
			"b.sql", "CREATE FUNCTION f() RETURNS int AS $$\nDECLARE fate int; -- world\nBEGIN END $$;", "fate",
		},
		"a named body":     {"b.sql", "DO $body$ BEGIN PERFORM blow(); END $body$;", "blow"},
		"a body in a body": {"b.sql", "DO $a$ BEGIN EXECUTE $b$SELECT storm$b$; END $a$;", "storm"},
		"a parameter":      {"b.sql", "SELECT refused($1)", "refused"},
		"a comment":        {"b.sql", "SELECT 1 -- world\n/* world */", ""},
		"a string":         {"b.sql", "SELECT 'world', 'it''s a world', E'\\'world'", ""},
		"the store":        {"relay/internal/pgstore/sql/b.sql", "SELECT route", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := oldWords(t, test.file, test.text); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// A finding has its line, also in a body.
func TestAFindingHasItsLine(t *testing.T) {
	t.Parallel()
	files := goodTree()
	files["b.sql"] = "-- One\n/* two\nthree */\nDO $$\nBEGIN\n  PERFORM 'six\nseven';\n  PERFORM storm();\nEND $$;\n" +
		"SELECT\n  world;\n"
	report := measure(t, files)
	var lines []int
	for _, c := range report.Checks {
		for _, finding := range c.Findings {
			lines = append(lines, finding.Line)
		}
	}
	if len(lines) != 2 || lines[0] != 8 || lines[1] != 11 {
		t.Errorf("found at %v, want 8 and 11", lines)
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	report := measure(t, goodTree())
	if err := report.Only("no_such"); err == nil {
		t.Error("there is no such check")
	}
	if err := report.Only("old_words,long_lines"); err != nil || len(report.Checks) != 2 {
		t.Errorf("%v: %v", err, report.Checks)
	}
	var text strings.Builder
	report.Checks = []shape.Check{
		{Name: "long_lines", Findings: []shape.Finding{{"a/b.go", 1, "x"}, {"a/c.go", 0, "y"}, {"d.go", 2, "z"}}},
	}
	report.Print(&text, 1)
	report.PrintFolders(&text)
	for _, want := range []string{"  a/b.go:1: x\n  and 2 more", "      2  a\n      1  .\n", "m3  ", "exported"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, text.String())
		}
	}
}
