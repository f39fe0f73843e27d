package shape

import "strings"

// class says for whom a file is.
type class int

const (
	product class = iota // what users compile or run
	example              // the reference application and the programs in other languages
	test                 // tests, proofs, benchmarks, and what only they need
)

// proofFolders are packages of published modules that only proofs and tests use.
var proofFolders = []string{
	"internal/check",           // the checker of recorded runs
	"relay/internal/memstore",  // the model of PostgreSQL
	"relay/internal/sim",       // proof-sim
	"relay/internal/modeltest", // proof-model
}

func classOf(name string) class {
	if strings.HasPrefix(name, "test/") || strings.HasSuffix(name, "_test.go") {
		return test
	}
	for _, folder := range proofFolders {
		if strings.HasPrefix(name, folder+"/") {
			return test
		}
	}
	if strings.HasPrefix(name, "examples/") {
		return example
	}
	return product
}

// The folders of the relay whose shape and words change together with the storage work, later.
const (
	coreFolder  = "relay/internal/core"
	storeFolder = "relay/internal/pgstore"
)

// under tells whether a file is in one of the folders or below it.
func under(name string, folders ...string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}

// IsProduct tells whether a package's folder, from the root, has code that users compile or run.
func IsProduct(folder string) bool { return folder != "test" && classOf(folder+"/a.go") == product }
