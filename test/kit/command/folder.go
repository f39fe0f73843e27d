package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// InFolder runs a proof that writes down what it sees into a folder, which goes if all is well and nobody wants to keep
// it. What says what is in there. The report comes last, so that its last line is the command's.
func InFolder(name, what string, keep bool,
	prove func(folder string, report io.Writer) (ok bool, err error),
) (ok bool, err error) {
	folder, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return false, fmt.Errorf("a folder for %s: %w", what, err)
	}
	fmt.Fprintf(os.Stderr, "%s: %s in %s\n", name, what, folder)
	var report bytes.Buffer
	ok, err = prove(folder, &report)
	if ok && err == nil && !keep {
		err = os.RemoveAll(folder)
	} else {
		fmt.Fprintf(os.Stderr, "%s: %s are in %s\n", name, what, folder)
	}
	_, printing := os.Stdout.Write(report.Bytes())
	return ok, errors.Join(err, printing)
}

// Seed is the seed that was given, or 1 for the short form, and another every time.
func Seed(given uint64, short bool) uint64 {
	switch {
	case given != 0:
		return given
	case short:
		return 1
	default:
		return uint64(time.Now().UnixNano())
	}
}
