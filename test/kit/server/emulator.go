package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// Emulator is the first argument with which a proof's program is to be a Pub/Sub emulator; see [RunEmulator].
const Emulator = "emulator"

// NewEmulator prepares a Pub/Sub emulator whose journal survives its death, and does not start it. The executable is
// one that calls [RunEmulator] when [Emulator] is its first argument. Faults is the address of its fault port.
func NewEmulator(folder, executable string) (_ *Server, faults string, err error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, "", err
	}
	if faults, err = FreeAddress(); err != nil {
		return nil, "", err
	}
	return &Server{
		Name: "the Pub/Sub emulator", Address: address, Log: filepath.Join(folder, "emulator.log"), Program: executable,
		Args: []string{Emulator, address, faults, filepath.Join(folder, "emulator")},
	}, faults, nil
}

// longestBackoff is as long as a message that failed waits for its next delivery: a proof's round takes seconds, and a
// retry policy of production has minutes.
const longestBackoff = 250 * time.Millisecond

// RunEmulator is the emulator's process, until the context ends.
func RunEmulator(ctx context.Context, address, faultAddress, folder string) error {
	server, err := pubsubemulator.Start(pubsubemulator.Config{
		Addr: address, FaultAddr: faultAddress, Dir: folder, LongestBackoff: longestBackoff,
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return server.Close()
}
