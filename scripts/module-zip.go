//go:build ignore

// Command module-zip takes out of zip files what is no regular file, as the go command does when it makes a module of a
// tag: a folder with an entry of its own would change the module's sum.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := filesAlone(name); err != nil {
			fmt.Fprintln(os.Stderr, "module-zip:", err)
			os.Exit(1)
		}
	}
}

func filesAlone(name string) (err error) {
	in, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	file, err := os.CreateTemp("", "module-zip")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	out := zip.NewWriter(file)
	for _, entry := range in.File {
		if !entry.Mode().IsRegular() {
			continue
		}
		if err := out.Copy(entry); err != nil {
			return err
		}
	}
	if err := errors.Join(out.Close(), file.Close()); err != nil {
		return err
	}
	written, err := os.ReadFile(file.Name())
	if err != nil {
		return err
	}
	return os.WriteFile(name, written, 0o644)
}
