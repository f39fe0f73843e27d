// Package input takes what people hand to a program: files with a limit, and YAML that says one thing.
package input

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads a regular file of at most limit bytes. Anything else may block or never end.
func ReadFile(name string, limit int) ([]byte, error) {
	return read(os.Stat, os.Open, name, limit)
}

// ReadIn is [ReadFile] inside a folder, which neither ".." nor a symbolic link leaves.
func ReadIn(folder *os.Root, name string, limit int) ([]byte, error) {
	return read(folder.Stat, folder.Open, name, limit)
}

func read(stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error), name string,
	limit int,
) ([]byte, error) {
	info, err := stat(name) // before it is opened: opening a pipe waits for somebody to write
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(content) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", name, limit)
	}
	return content, nil
}
