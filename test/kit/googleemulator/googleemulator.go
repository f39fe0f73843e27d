// Package googleemulator runs Google's own Pub/Sub emulator, a program in Java, where it is installed.
//
// It is a second opinion beside package pubsubemulator, which is ours: nobody here decided how it delivers. It keeps
// a backlog per ordering key, binds keys to streams, and knows exactly-once delivery and dead letters. It redelivers
// nothing behind a message that comes again, does not wait as a retry policy says, checks no limits, forgets
// everything when it ends, and makes no faults.
//
// No registry of packages has it, so it is not everywhere: see [Find].
package googleemulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/server"
)

const (
	// Variable names the emulator's jar.
	Variable = "SERVICES_PUBSUB_EMULATOR_JAR"
	// debian is the package of Google's that has it.
	debian = "google-cloud-cli-pubsub-emulator"
)

// ErrNotInstalled is that this machine does not have it, which is no mistake.
var ErrNotInstalled = errors.New("googleemulator: Google's Pub/Sub emulator is not installed")

// Find returns the emulator's jar: the one that [Variable] names, or that of Google's Debian package.
func Find(ctx context.Context) (string, error) {
	if jar := os.Getenv(Variable); jar != "" {
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("googleemulator: %s: %w", Variable, err)
		}
		return jar, needJava()
	}
	files, err := exec.CommandContext(ctx, "dpkg", "-L", debian).Output()
	for file := range strings.Lines(string(files)) {
		name := strings.TrimSpace(file)
		if ok, _ := filepath.Match("cloud-pubsub-emulator-*.jar", filepath.Base(name)); ok {
			return name, needJava()
		}
	}
	return "", fmt.Errorf("%w: install the package %s, or let %s name its jar (dpkg: %w)", ErrNotInstalled, debian,
		Variable, err)
}

func needJava() error {
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("%w: its jar is there, and no java: %w", ErrNotInstalled, err)
	}
	return nil
}

// New prepares an emulator on a free port, and does not start it.
func New(ctx context.Context, folder string) (*server.Server, error) {
	jar, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	address, err := server.FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(address, ":")
	return &server.Server{
		Name: "Google's Pub/Sub emulator", Address: address, Log: filepath.Join(folder, "google-emulator.log"),
		Program: "java",
		// It starts sooner with the quick compiler alone, and one thread collects its garbage: tests have other work
		// to do.
		Args: []string{
			"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-jar", jar, "--host=127.0.0.1", "--port=" + port,
		},
	}, nil
}

// Start runs an emulator for as long as the test does, and returns its address. Where it is not installed, the test
// is skipped.
func Start(t testing.TB) string {
	t.Helper()
	emulator, err := New(t.Context(), t.TempDir())
	if errors.Is(err, ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := emulator.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Close)
	return emulator.Address
}
