package torture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Check reads the histories in a folder and checks them. Resolve, when given, tells whether a transaction
// committed whose producer never learned it.
func Check(folder string, floor check.Floor, resolve func(key string) (bool, error)) (*check.Verdict, error) {
	if resolve == nil {
		return checkFolder(folder, floor, nil)
	}
	return checkFolder(folder, floor, func(key string) (check.Outcome, error) {
		committed, err := resolve(key)
		if committed {
			return check.OK, err
		}
		return check.Failed, err
	})
}

// checkFolder is Check where a transaction can have another end as well.
func checkFolder(folder string, floor check.Floor,
	resolve func(key string) (check.Outcome, error),
) (*check.Verdict, error) {
	c := check.New()
	for _, name := range []string{producersFile, faultsFile, allStepsFile, deliveriesFile, tablesFile} {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("torture: %w", err)
		}
		err = errors.Join(c.Read(file), file.Close())
		if err != nil {
			return nil, err
		}
	}
	if resolve != nil {
		if err := writeResolved(folder, c.Unresolved(), resolve); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(filepath.Join(folder, resolvedFile))
	switch {
	case err == nil:
		if err := errors.Join(c.Read(file), file.Close()); err != nil {
			return nil, err
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("torture: %w", err)
	}
	return c.Verdict(floor), nil
}

// resolvedFile has what became of transactions whose producers never learned it. It is a file, so that histories can be
// checked again when the database is gone.
const resolvedFile = "resolved.jsonl"

func writeResolved(folder string, keys []string, resolve func(key string) (check.Outcome, error)) error {
	var history check.History
	for _, key := range keys {
		outcome, err := resolve(key)
		if err != nil {
			return err
		}
		history = append(history, check.Record{Tx: &check.Tx{Key: key, Outcome: outcome}})
	}
	return write(folder, resolvedFile, history)
}

// Faults are those of a run's log, in the order in which they ended. Lost acknowledgements are not among them: the
// relays' publishers log those.
func Faults(folder string) ([]check.Fault, error) {
	file, err := os.Open(filepath.Join(folder, faultsFile))
	if err != nil {
		return nil, fmt.Errorf("torture: %w", err)
	}
	defer file.Close()
	history, err := check.ReadHistory(file)
	if err != nil {
		return nil, fmt.Errorf("torture: %s: %w", faultsFile, err)
	}
	var faults []check.Fault
	for _, r := range history {
		if r.Fault != nil {
			faults = append(faults, *r.Fault)
		}
	}
	return faults, nil
}
