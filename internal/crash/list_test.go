package crash_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/crash"
)

const root = "../.."

var (
	anyCall = regexp.MustCompile(`\bcrash\.Point\(`)
	call    = regexp.MustCompile(`\bcrash\.Point\("([^"]*)"\)`)
	name    = regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)
)

// calls counts the calls of every point in the repository's programs, and returns the files that call one by
// anything but its name.
func calls(t *testing.T) (counts map[string]int, nameless []string) {
	t.Helper()
	counts = map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // somebody else's for a while: builds leave folders behind, and remove them
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		named := call.FindAllStringSubmatch(string(text), -1)
		for _, match := range named {
			counts[match[1]]++
		}
		if len(named) != len(anyCall.FindAllString(string(text), -1)) {
			nameless = append(nameless, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts, nameless
}

// check compares a list with the calls.
func check(list []crash.Description, counts map[string]int) (problems []string) {
	seen := map[string]bool{}
	for _, d := range list {
		switch {
		case seen[d.Name]:
			problems = append(problems, d.Name+" is listed twice")
		case !name.MatchString(d.Name):
			problems = append(problems, d.Name+" is not step.moment")
		case len(d.Where) < len("it is done"):
			problems = append(problems, d.Name+" is not explained")
		case d.OnServer && counts[d.Name] > 0:
			problems = append(problems, d.Name+" is on the server, and is called")
		case !d.OnServer && counts[d.Name] == 0:
			problems = append(problems, d.Name+" is called nowhere")
		}
		seen[d.Name] = true
	}
	for called := range counts {
		if !seen[called] {
			problems = append(problems, called+" is called and not listed")
		}
	}
	slices.Sort(problems)
	return problems
}

func TestEveryPointIsListedAndCalled(t *testing.T) {
	t.Parallel()
	counts, nameless := calls(t)
	for _, file := range nameless {
		t.Errorf("%s calls a point by something else than its name", file)
	}
	for _, problem := range check(crash.List(), counts) {
		t.Error(problem)
	}
}

// The check itself must be able to refuse.
func TestAListCanBeInvalid(t *testing.T) {
	t.Parallel()
	good := crash.Description{Name: "a.before", Where: "nothing is done"}
	for _, test := range []struct {
		list    []crash.Description
		counts  map[string]int
		problem string
	}{
		{[]crash.Description{good}, map[string]int{"a.before": 2}, ""},
		{[]crash.Description{good, good}, map[string]int{"a.before": 1}, "a.before is listed twice"},
		{[]crash.Description{good}, nil, "a.before is called nowhere"},
		{[]crash.Description{good}, map[string]int{"a.before": 1, "b.after": 1}, "b.after is called and not listed"},
		{[]crash.Description{{Name: "a.before"}}, map[string]int{"a.before": 1}, "a.before is not explained"},
		{[]crash.Description{{Name: "before", Where: "nothing is done"}}, nil, "before is not step.moment"},
		{
			[]crash.Description{{Name: "a.before", Where: "nothing is done", OnServer: true}},
			map[string]int{"a.before": 1},
			"a.before is on the server, and is called",
		},
	} {
		if got := strings.Join(check(test.list, test.counts), "; "); got != test.problem {
			t.Errorf("got %q, want %q", got, test.problem)
		}
	}
}
