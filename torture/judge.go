package torture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Judge reads the histories in a folder and judges them. Resolve, when given, tells whether a transaction
// committed whose producer never learned it.
func Judge(folder string, floor check.Floor, resolve func(key string) (bool, error)) (*check.Verdict, error) {
	c := check.New()
	for _, name := range []string{producersFile, faultsFile, stepsJudged, deliveriesFile, tablesFile} {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("torture: %w", err)
		}
		err = errors.Join(c.Read(file), file.Close())
		if err != nil {
			return nil, err
		}
	}
	for _, key := range c.Unresolved() {
		if resolve == nil {
			break
		}
		committed, err := resolve(key)
		if err != nil {
			return nil, err
		}
		outcome := check.Failed
		if committed {
			outcome = check.OK
		}
		c.Add(check.Record{Tx: &check.Tx{Key: key, Outcome: outcome}})
	}
	return c.Verdict(floor), nil
}
