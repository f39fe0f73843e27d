package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// NewRedis prepares a Redis that remembers nothing when it dies, unless the settings say otherwise, and does not start
// it.
func NewRedis(folder string, settings ...string) (*Server, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(folder, "redis-")
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	_, port, _ := strings.Cut(address, ":")
	args := []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", data}
	return &Server{
		Name: "redis-server", Address: address, Log: filepath.Join(data, "log"), Program: "redis-server",
		Args: append(args, settings...),
	}, nil
}
