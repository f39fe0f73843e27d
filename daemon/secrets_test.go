package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// The log names every file with a secret that others can read, and no other.
func TestSecretsThatEverybodyCanRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(canary+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return file
	}
	p := inProcess(t, nil)
	files := []config.Key[string]{
		config.Text("here.key_file", config.Spec[string]{Doc: "A key."}),
		config.Text("here.credentials_file", config.Spec[string]{Doc: "Credentials."}),
		config.Text("here.other_file", config.Spec[string]{Doc: "Not set."}),
	}
	p.Brokers[0].SecretFiles = files
	for _, key := range files {
		p.Brokers[0].Keys = append(p.Brokers[0].Keys, key)
	}
	_, log, stop := start(t, p, "--database-password-file="+write("password", 0o644),
		"--here-key-file="+write("key", 0o640), "--here-credentials-file="+write("credentials", 0o604))
	until(t, "the second warning", func() bool {
		return strings.Count(log.String(), "every user of this machine can read a file") == 2
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	said := log.String()
	for _, want := range []string{`"key":"database.password"`, `"key":"here.credentials_file"`} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not told:\n%s", want, said)
		}
	}
	if strings.Contains(said, canary) || strings.Contains(said, `"key":"here.key_file"`) {
		t.Errorf("the log says\n%s", said)
	}
}

func TestReadSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(canary+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if secret, everybody, err := ReadSecret(file); secret != canary || everybody || err != nil {
		t.Errorf("got %q, %v, %v", secret, everybody, err)
	}
	for _, name := range []string{filepath.Dir(file), file + ".not"} {
		if _, _, err := ReadSecret(name); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
