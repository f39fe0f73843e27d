package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testFolders are the folders of test/ that have Go files, relative to it.
func testFolders(t *testing.T) (folders []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(filepath.Join(root, "test")), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testdata" {
			return fs.SkipDir
		}
		if folder := filepath.Dir(path); filepath.Ext(path) == ".go" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// named tells whether a page names a folder, or the command that is in it.
func named(page, folder string) bool {
	command, isCommand := strings.CutPrefix(folder, "cmd/")
	return strings.Contains(page, "`"+folder+"`") || isCommand && strings.Contains(page, "`make "+command+"`")
}

// Commands without a target of make have their own page, or are called by scripts.
var otherCommands = []string{"cmd/conformance", "cmd/pubsub-emulator"}

var (
	folderPattern = regexp.MustCompile("`((?:suite|proof|bench|kit|cmd)/[a-z0-9/-]+)`")
	targetPattern = regexp.MustCompile("`make ([a-z-]+)")
)

// test/README.md names every folder of test/, and no other; and every command that it names is there.
func TestTheREADMEOfTestsNamesEveryFolder(t *testing.T) {
	t.Parallel()
	page, folders := read(t, "test/README.md"), testFolders(t)
	for _, folder := range folders {
		if !named(page, folder) && !slices.Contains(otherCommands, folder) {
			t.Errorf("test/README.md does not name %s", folder)
		}
	}
	for _, match := range folderPattern.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(folders, match[1]) {
			t.Errorf("test/README.md names %s, which is not there", match[1])
		}
	}
	makefile := read(t, "Makefile")
	for _, match := range targetPattern.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(makefile, "\n"+match[1]+":") {
			t.Errorf("test/README.md names make %s, which is not there", match[1])
		}
	}
	if len(folders) < 40 {
		t.Errorf("%d folders: this test does not see them", len(folders))
	}
}

// The check must be able to refuse.
func TestAFolderThatIsNotNamedIsFound(t *testing.T) {
	t.Parallel()
	page := "`suite/emit` and `make proof-order`"
	for folder, want := range map[string]bool{
		"suite/emit": true, "suite/em": false, "suite/emitter": false, "cmd/proof-order": true, "cmd/proof": false,
		"proof/order": false,
	} {
		if named(page, folder) != want {
			t.Errorf("%s is named: %v", folder, !want)
		}
	}
}
