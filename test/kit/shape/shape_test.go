package shape_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/shape"
)

// goodTree is a tree in order: 14 modules, each with a package.
func goodTree() map[string]string {
	files := map[string]string{"go.work": "go 1.26.0\n\n"}
	page := "# Map\n\n| module | requires | who needs it |\n|---|---|---|\n"
	for i := range 14 {
		folder, module := fmt.Sprintf("m%d", i), fmt.Sprintf("example.com/tree/m%d", i)
		if i == 0 {
			folder, module = ".", "example.com/tree"
		}
		files[filepath.Join(folder, "go.mod")] = "module " + module + "\n\ngo 1.26.0\n"
		files[filepath.Join(folder, "a.go")] = "// Package a is one.\npackage a\n\n// Event is exported.\ntype Event " +
			"struct{ ID int }\n"
		files["go.work"] += "use ./" + folder + "\n"
		page += "| `" + folder + "` | nothing | whoever |\n"
	}
	files["ARCHITECTURE.md"] = page + "\nMore.\n"
	return files
}

func measure(t *testing.T, files map[string]string) *shape.Report {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := shape.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	report, err := repository.Measure("no-barrier")
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// found are the numbers of findings, by check, without those that found nothing.
func found(report *shape.Report) string {
	var all []string
	for _, c := range report.Checks {
		if len(c.Findings) > 0 {
			all = append(all, fmt.Sprintf("%s=%d", c.Name, len(c.Findings)))
		}
	}
	return strings.Join(all, " ")
}

func TestATreeInOrder(t *testing.T) {
	t.Parallel()
	report := measure(t, goodTree())
	want := "house modules=14 packages=14 product_lines=70 example_lines=0 test_lines=0 exported=14 longest_file=5" +
		" longest_function=0 mutant_sites=0 root_requires=0 wrong_modules=0 big_interfaces=0 long_functions=0 long_files=0" +
		" long_lines=0 old_words=0 ok=true"
	if report.Line() != want || !report.OK() {
		t.Errorf("got  %s\nwant %s", report.Line(), want)
	}
}

const sixMethods = "interface { A(); B(); C(); D(); E(); F() }"

// wrongTree is what is added to a good tree, and what must be found.
type wrongTree struct {
	files map[string]string
	want  string
}

var wrongShapes = map[string]wrongTree{
	"a mutant":                   {map[string]string{"a/b.go": "package a\n\n// A mutant.\n"}, "mutant_sites=1"},
	"a mutant in SQL and in Lua": {map[string]string{"b.sql": "-- planted\n", "c.lua": "-- MISTAKEN\n"}, "mutant_sites=2"},
	"a mutant by its name": {
		map[string]string{"b.go": "package a\n\n// no-barrier, twice no-barrier\n"}, "mutant_sites=1",
	},
	"a mutant of a proof": {
		map[string]string{"relay/internal/sim/b.go": "package sim\n\n// A mutant.\n"}, "",
	},
	"a mutant in tests": {
		map[string]string{"test/b.go": "package a\n\n// A mutant.\n", "a_test.go": "package a\n\n// A mutant.\n"}, "",
	},
	"the root requires": {
		map[string]string{"go.mod": "module example.com/tree\n\nrequire example.com/x v1.0.0\n"}, "root_requires=1",
	},
	"the root replaces": {
		map[string]string{"go.mod": "module example.com/tree\n\nreplace example.com/x => ./x\n"}, "root_requires=1",
	},
	"a module too many": {map[string]string{"m14/go.mod": "module example.com/tree/m14\n"}, "wrong_modules=3"},
	"a module less": {
		map[string]string{"ARCHITECTURE.md": strings.Replace(goodTree()["ARCHITECTURE.md"], "| `m3` ", "| `m30` ", 1)},
		"wrong_modules=2",
	},
	"no module in go.work": {
		map[string]string{"go.work": strings.Replace(goodTree()["go.work"], "use ./m3\n", "", 1)}, "wrong_modules=1",
	},
	"six methods":        {map[string]string{"b.go": "package a\n\ntype i " + sixMethods + "\n"}, "big_interfaces=1"},
	"six without a name": {map[string]string{"b.go": "package a\n\nfunc f(" + sixMethods + ") {}\n"}, "big_interfaces=1"},
	"six in a test":      {map[string]string{"b_test.go": "package a\n\ntype i " + sixMethods + "\n"}, ""},
	"six in the core": {
		map[string]string{"relay/internal/core/b.go": "package core\n\ntype i " + sixMethods + "\n"}, "",
	},
	"five methods": {map[string]string{"b.go": "package a\n\ntype i interface { A(); B(); C(); D(); E() }\n"}, ""},
	"five and one embedded": {
		map[string]string{
			"b.go": "package a\n\ntype i interface { j; A(); B(); C(); D() }\ntype j interface { error; E() }\n",
		}, "big_interfaces=1",
	},
	"five, one of them twice": {
		map[string]string{
			"b.go": "package a\n\ntype i interface { j; A(); B(); C(); D() }\ntype j interface { A(); E() }\n",
		}, "",
	},
	"four and one of another package": {
		map[string]string{
			"b/b.go": "package b\n\ntype J interface { E(); F() }\n",
			"b.go":   "package a\n\nimport \"example.com/tree/b\"\n\ntype i interface { b.J; A(); B(); C(); D() }\n",
		}, "big_interfaces=1",
	},
	"four and two of the library": {
		map[string]string{"b.go": "package a\n\nimport \"io\"\n\ntype i interface { io.ReadWriter; A(); B(); C(); D() }\n"},
		"big_interfaces=1",
	},
	"a generic one embedded": {
		map[string]string{
			"b.go": "package a\n\ntype i interface { j[int]; A(); B(); C(); D() }\ntype j[T any] interface { E(T); F() }\n",
		}, "big_interfaces=1",
	},
	"a union has no methods": {map[string]string{"b.go": "package a\n\ntype i interface { ~int | ~string; A() }\n"}, ""},
}

var long = "// " + strings.Repeat("é", 118)

var wrongSizes = map[string]wrongTree{
	"101 lines without a name": {
		map[string]string{"b.go": "package a\n\nvar f = func() {" + strings.Repeat("\n", 100) + "}\n"}, "long_functions=1",
	},
	"a function of 101 lines": {
		map[string]string{"b.go": "package a\n\nfunc f() {" + strings.Repeat("\n", 100) + "}\n"}, "long_functions=1",
	},
	"a function of 100 lines": {
		map[string]string{"b.go": "package a\n\nfunc f() {" + strings.Repeat("\n", 99) + "}\n"}, "",
	},
	"a method of a test of 101 lines": {
		map[string]string{"test/b.go": "package a\n\nfunc (Event) f() {" + strings.Repeat("\n", 100) + "}\n"},
		"long_functions=1",
	},
	"a file of 601 lines":   {map[string]string{"b.go": "package a\n" + strings.Repeat("\n", 600)}, "long_files=1"},
	"a file of 600 lines":   {map[string]string{"b_test.go": "package a\n" + strings.Repeat("\n", 599)}, ""},
	"a line of 121 columns": {map[string]string{"b.go": "package a\n\n" + long + "\n"}, "long_lines=1"},
	"a line of 120 columns": {map[string]string{"b.go": "package a\n\n" + strings.Replace(long, "é", "", 1) + "\n"}, ""},
	"in SQL, Lua and shell": {
		map[string]string{
			"b.sql": long, "b.lua": long, "b.sh": long, "b": "#!/usr/bin/env bash\n" + long, ".ci/run": "#!/bin/sh\n" + long,
		}, "long_lines=5",
	},
	"in a field's tag": {
		map[string]string{"b.go": "package a\n\ntype t struct {\n\tA int `" + strings.Repeat("x", 120) + "`\n}\n"}, "",
	},
	"in a field's comment": {
		map[string]string{"b.go": "package a\n\ntype t struct {\n\tA int " + long + "\n}\n"}, "long_lines=1",
	},
	"in what is neither": {map[string]string{"b.md": long, "b": long}, ""},
	"in testdata":        {map[string]string{"testdata/b.go": long}, ""},
	"in a generated file": {
		map[string]string{"b.go": "// Code generated by x. DO NOT EDIT.\n\npackage a\n\n" + long + "\n"}, "",
	},
}

// Every check is seen to fail, and only that one.
func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel()
	all := maps.Clone(wrongShapes)
	maps.Copy(all, wrongSizes)
	if len(all) != len(wrongShapes)+len(wrongSizes) {
		t.Error("two trees have one name")
	}
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := goodTree()
			maps.Copy(files, test.files)
			report := measure(t, files)
			if got := found(report); got != test.want || report.OK() != (test.want == "") {
				t.Errorf("found %q, want %q: %v", got, test.want, report.Checks)
			}
		})
	}
}
