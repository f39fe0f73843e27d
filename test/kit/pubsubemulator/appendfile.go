package pubsubemulator

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// appendFile is a file that only grows by whole lines. The caller serialises append; sync may be
// called by many at once.
type appendFile struct {
	f      *os.File
	broken error

	syncMu sync.Mutex
	synced int64

	sizeMu sync.Mutex
	size   int64
}

// openAppendFile opens path for appending behind size, cutting off what follows: the piece of a line
// whose writer was killed. Nobody was answered for that line.
func openAppendFile(path string, size int64) (*appendFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(fmt.Errorf("cut the torn line off %s: %w", path, err), f.Close())
	}
	return &appendFile{f: f, size: size, synced: size}, nil
}

// append writes whole lines with one write call, or none of them.
func (a *appendFile) append(lines []byte) error {
	if a.broken != nil {
		return a.broken
	}
	if _, err := a.f.Write(lines); err != nil {
		// Half a line in the middle of the file would make every later line unreadable.
		if cut := a.f.Truncate(a.end()); cut != nil {
			a.broken = fmt.Errorf("journal %s ends in half a line: %w", a.f.Name(), errors.Join(err, cut))
			return a.broken
		}
		return err
	}
	a.sizeMu.Lock()
	a.size += int64(len(lines))
	a.sizeMu.Unlock()
	return nil
}

// end is the offset behind the last line.
func (a *appendFile) end() int64 {
	a.sizeMu.Lock()
	defer a.sizeMu.Unlock()
	return a.size
}

// sync returns when the lines up to offset are on the disk. One fsync serves everybody who waited for
// the previous one.
func (a *appendFile) sync(offset int64) error {
	a.syncMu.Lock()
	defer a.syncMu.Unlock()
	if a.synced >= offset {
		return nil
	}
	end := a.end()
	if err := a.f.Sync(); err != nil {
		return err
	}
	a.synced = end
	return nil
}

func (a *appendFile) close() error { return a.f.Close() }

// eachLine calls visit for every line that ends in a newline and returns the offset behind the last.
func eachLine(path string, visit func(line []byte) error) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 1<<20)
	var end int64
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return end, fmt.Errorf("read %s: %w", path, err)
		}
		if err := visit(line); err != nil {
			return end, fmt.Errorf("%s line %d: %w", path, number, err)
		}
		end += int64(len(line))
	}
}
