package access

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

const (
	// othersMay are the rights of everybody but the owner of a file and its group.
	othersMay fs.FileMode = 0o007
	// groupMayWrite is never needed for a file that is only read.
	groupMayWrite fs.FileMode = 0o030
	// allButOwner are the rights of everybody but the owner.
	allButOwner fs.FileMode = 0o077

	mostFileBytes = 1 << 20
)

// privateTo are the rights that a file with secrets must not give.
func privateTo(groupMayRead bool) fs.FileMode {
	if groupMayRead {
		return othersMay | groupMayWrite
	}
	return allButOwner
}

// readPrivate reads a file that gives none of some rights.
func readPrivate(path string, without fs.FileMode) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a file of the console: %w", err)
	}
	defer file.Close()
	info, err := file.Stat() // of what was opened, which a rename cannot change any more
	if err != nil {
		return nil, fmt.Errorf("look at a file of the console: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&without != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: other users of this machine have rights to it (mode %04o): chmod %04o it", path, mode,
			mode&^without)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read a file of the console: %w", err)
	}
	if len(text) > mostFileBytes {
		return nil, fmt.Errorf("%s: must not be larger than %d bytes", path, mostFileBytes)
	}
	return text, nil
}

// ReadSecret reads a file that holds one secret, without the line break at its end. Nobody but the file's owner may
// have rights to it; groupMayRead allows its group to read it, as in a pod whose secrets are mounted for a group.
func ReadSecret(path string, groupMayRead bool) (string, error) {
	text, err := readPrivate(path, privateTo(groupMayRead))
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", errors.New(path + ": the file is empty; write the secret into it")
	}
	return secret, nil
}
