package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// NewNATS prepares a NATS server whose streams survive its death, and does not start it. More are added to its
// arguments.
func NewNATS(folder string, more ...string) (*Server, error) {
	program, err := NATSProgram()
	if err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(address, ":")
	args := []string{"--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir", filepath.Join(folder, "nats")}
	return &Server{
		Name: "nats-server", Address: address, Log: filepath.Join(folder, "nats.log"), Program: program,
		Args: append(args, more...),
	}, nil
}

// NATSProgram finds the nats-server that services/services installs, in the version that it pins.
func NATSProgram() (string, error) {
	settings, err := fileAbove("services/settings.env")
	if err != nil {
		return "", err
	}
	_, version, _ := strings.Cut(settings, "\nVERSION_NATS=")
	version, _, _ = strings.Cut(version, "\n")
	for _, folder := range Tools() {
		program := filepath.Join(folder, "nats-server-"+version, "nats-server")
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("server: there is no nats-server %s: run services/services up nats", version)
}

// Tools are the folders in which services/services may have put what it has downloaded.
func Tools() []string {
	folders := []string{os.Getenv("POSTHASTE_SERVICES_DIR"), "/var/tmp/posthaste-services"}
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, filepath.Join(cache, "posthaste", "services"))
	}
	for i := range folders {
		folders[i] = filepath.Join(folders[i], "tools")
	}
	return folders
}

// fileAbove reads a file of the repository, from whichever folder of it the program runs in.
func fileAbove(name string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("server: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(folder, name))
		above := filepath.Dir(folder)
		if err == nil || !errors.Is(err, os.ErrNotExist) || above == folder {
			return string(text), err
		}
		folder = above
	}
}
