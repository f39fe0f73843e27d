package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// files are the texts of the repository by name: those of git, and new ones that it does not ignore.
func files(t *testing.T) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	list, err := command.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	texts := map[string]string{}
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and git has not been told
		}
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// A linkedTree is a repository's files and folders, with what is known of its pages.
type linkedTree struct {
	texts   map[string]string
	folders map[string]bool
	anchors map[string][]string // of pages, as they are asked for
}

func newLinkedTree(texts map[string]string) *linkedTree {
	tree := &linkedTree{texts: texts, folders: map[string]bool{".": true}, anchors: map[string][]string{}}
	for name := range texts {
		for folder := path.Dir(name); !tree.folders[folder]; folder = path.Dir(folder) {
			tree.folders[folder] = true
		}
	}
	return tree
}

// pages are the names of the Markdown files, in order.
func (l *linkedTree) pages() []string {
	isPage := func(name string) bool { return path.Ext(name) == ".md" }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l.texts)), func(name string) bool { return !isPage(name) })
}

var (
	fencePattern   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codePattern    = regexp.MustCompile("`[^`\n]*`")
	headingPattern = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	unnamedPattern = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]*)(?:\s+"[^"]*")?\)`)
	schemePattern  = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	// A page that some file names: from the root, by a relative path or by its address.
	mentionPattern = regexp.MustCompile(`(?m)(?:^|[^\w/.-]|\.\./|` + ours + `/blob/main/)(docs/[\w./` +
		`-]+\.md)(?:#([\w-]+))?`)
)

// anchorsOf are the places of a page that a link can lead to, as GitHub names them. A heading that is there again gets
// a number.
func anchorsOf(text string) (found []string) {
	seen := map[string]int{}
	for _, heading := range headingPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
		name := strings.ReplaceAll(unnamedPattern.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")
		seen[name]++
		if again := seen[name] - 1; again > 0 {
			name = fmt.Sprintf("%s-%d", name, again)
		}
		found = append(found, name)
	}
	return found
}

// linksOf are the targets of a page's links, without those in code.
func linksOf(text string) (targets []string) {
	text = codePattern.ReplaceAllString(fencePattern.ReplaceAllString(text, ""), "")
	for _, match := range linkPattern.FindAllStringSubmatch(text, -1) {
		targets = append(targets, match[1])
	}
	return targets
}

// resolve is the file or folder that a page's link leads to, and the place in it; ours is false for the rest of the
// world.
func resolve(page, target string) (name, anchor string, isOurs bool) {
	target, fromRoot := strings.CutPrefix(target, "https://"+ours+"/blob/main/")
	if !fromRoot && schemePattern.MatchString(target) {
		return "", "", false
	}
	name, anchor, _ = strings.Cut(target, "#")
	switch {
	case name == "":
		name = page
	case !fromRoot:
		name = path.Join(path.Dir(page), name)
	}
	return path.Clean(name), anchor, true
}

// missing says why nothing is there; it is empty if something is.
func (l *linkedTree) missing(name, anchor string) string {
	text, isFile := l.texts[name]
	if !isFile && !l.folders[name] {
		return "which is not there"
	}
	if anchor == "" {
		return ""
	}
	if path.Ext(name) != ".md" {
		return "and only pages have anchors"
	}
	if l.anchors[name] == nil {
		l.anchors[name] = anchorsOf(text)
	}
	if !slices.Contains(l.anchors[name], anchor) {
		return "whose page has no such heading"
	}
	return ""
}

// broken lists the links of all pages that lead nowhere, and how many it looked at.
func (l *linkedTree) broken() (problems []string, links int) {
	for _, page := range l.pages() {
		for _, target := range linksOf(l.texts[page]) {
			name, anchor, isOurs := resolve(page, target)
			if !isOurs {
				continue
			}
			links++
			if why := l.missing(name, anchor); why != "" {
				problems = append(problems, fmt.Sprintf("%s links to %s, %s", page, target, why))
			}
		}
	}
	return problems, links
}

// misnamed lists the pages of docs that a file of any kind names and that are not there, and how many it looked at.
func (l *linkedTree) misnamed() (problems []string, mentions int) {
	for _, file := range slices.Sorted(maps.Keys(l.texts)) {
		for _, match := range mentionPattern.FindAllStringSubmatch(l.texts[file], -1) {
			mentions++
			if why := l.missing(match[1], match[2]); why != "" {
				problems = append(problems, fmt.Sprintf("%s names %s, %s", file, strings.Trim(match[1]+"#"+match[2], "#"), why))
			}
		}
	}
	return problems, mentions
}

// unlisted are the pages of docs that its README does not link.
func (l *linkedTree) unlisted() (problems []string) {
	const door = "docs/README.md"
	listed := map[string]bool{door: true}
	for _, target := range linksOf(l.texts[door]) {
		name, _, _ := resolve(door, target)
		listed[name] = true
	}
	for _, page := range l.pages() {
		if strings.HasPrefix(page, "docs/") && !listed[page] {
			problems = append(problems, door+" does not link "+page)
		}
	}
	return problems
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	tree := newLinkedTree(files(t))
	problems, links := tree.broken()
	report(t, "a link", problems)
	if links < 100 {
		t.Errorf("found %d links: this test does not see them", links)
	}
}

// Comments, scripts, messages and addresses name pages too.
func TestThePagesThatFilesNameAreThere(t *testing.T) {
	t.Parallel()
	texts := files(t)
	delete(texts, "test/suite/docs/links_test.go") // has wrong names, to show that they are found
	problems, mentions := newLinkedTree(texts).misnamed()
	report(t, "a name", problems)
	if mentions < 100 {
		t.Errorf("found %d names of pages: this test does not see them", mentions)
	}
}

func TestEveryPageHasItsDoor(t *testing.T) {
	t.Parallel()
	report(t, "docs", newLinkedTree(files(t)).unlisted())
}

// The checks themselves must be able to refuse.
func TestBrokenLinksAreFound(t *testing.T) {
	t.Parallel()
	const one = "# One\n\n## What, `it` is\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n"
	for name, test := range map[string]struct{ file, text, problem string }{
		"a page":                  {"docs/b/two.md", "[x](one.md) [y](../a.md)", ""},
		"a folder":                {"docs/b/two.md", "[x](../../src)", ""},
		"another kind of file":    {"docs/b/two.md", "[x](../../src/x.go)", ""},
		"an anchor":               {"docs/b/two.md", "[x](one.md#what-it-is) [y](one.md#twice-1 \"title\")", ""},
		"an anchor of its own":    {"docs/b/two.md", "# Two\n[x](#two)", ""},
		"elsewhere":               {"docs/b/two.md", "[x](https://example.com/none.md#none) [y](mailto:a@example.com)", ""},
		"by address":              {"docs/b/two.md", "[x](https://" + ours + "/blob/main/docs/b/one.md#one)", ""},
		"in code":                 {"docs/b/two.md", "`[x](none.md)`\n```\n[x](none.md)\n```\n", ""},
		"outside of docs":         {"src/README.md", "[x](../docs/b/one.md#one)", ""},
		"no such page":            {"docs/b/two.md", "[x](none.md)", "links to none.md, which is not there"},
		"of another folder":       {"docs/b/two.md", "[x](a.md)", "links to a.md, which is not there"},
		"an image":                {"docs/b/two.md", "![x](x.png)", "links to x.png, which is not there"},
		"no such anchor":          {"docs/b/two.md", "[x](one.md#what-is)", "links to one.md#what-is, whose page has no"},
		"no such third":           {"docs/b/two.md", "[x](one.md#twice-2)", "one.md#twice-2, whose page has no"},
		"a comment is no heading": {"docs/b/two.md", "[x](one.md#no-heading)", "one.md#no-heading, whose page has no"},
		"no such own anchor":      {"docs/b/two.md", "# Two\n[x](#three)", "links to #three, whose page has no"},
		"an anchor of code":       {"docs/b/two.md", "[x](../../src/x.go#L1)", "and only pages have anchors"},
		"no such address": {
			"src/README.md", "[x](https://" + ours + "/blob/main/docs/none.md)", "which is not there",
		},
		"outside, and wrong": {"src/README.md", "[x](docs/b/one.md)", "links to docs/b/one.md, which is not there"},
	} {
		tree := newLinkedTree(map[string]string{
			"docs/a.md": "# A\n", "docs/b/one.md": one, "src/x.go": "", test.file: test.text,
		})
		problems, _ := tree.broken()
		expect(t, name, problems, test.problem)
	}
}

func TestWrongNamesOfPagesAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, problem string }{
		"in a comment":       {"// docs/b/one.md says so.", ""},
		"by a relative path": {`os.ReadFile("../../docs/b/one.md")`, ""},
		"by address":         {"https://" + ours + "/blob/main/docs/b/one.md#one", ""},
		"of somebody else":   {"https://example.com/docs/none.md and vendor/docs/none.md", ""},
		"not there":          {"// docs/one.md says so.", "names docs/one.md, which is not there"},
		"nor there":          {`os.ReadFile("../../docs/none.md")`, "names docs/none.md, which is not there"},
		"no such anchor": {
			"https://" + ours + "/blob/main/docs/b/one.md#two", "names docs/b/one.md#two, whose page has no",
		},
	} {
		problems, _ := newLinkedTree(map[string]string{"docs/b/one.md": "# One\n", "src/x.go": test.text}).misnamed()
		expect(t, name, problems, test.problem)
	}
}

func TestAPageWithoutADoorIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ door, problem string }{
		"all":     {"[a](a.md) [one](b/one.md#one)", ""},
		"one not": {"[a](a.md) [b](b)", "docs/README.md does not link docs/b/one.md"},
		"no door": {"", "docs/README.md does not link docs/a.md"},
	} {
		tree := newLinkedTree(map[string]string{
			"README.md": "", "docs/README.md": test.door, "docs/a.md": "# A\n", "docs/b/one.md": "# One\n",
		})
		expect(t, name, tree.unlisted(), test.problem)
	}
}

// expect wants a problem that says this, or none at all.
func expect(t *testing.T, name string, problems []string, want string) {
	t.Helper()
	got := strings.Join(problems, "; ")
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}
