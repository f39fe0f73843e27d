package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority writes a certificate for sslrootcert.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDatabaseTLS(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	const needsTLS = "is not on this machine: add sslmode=verify-full"
	for url, problem := range map[string]string{
		"postgres://u:hunter2@127.0.0.1/shop":                                    "",
		"postgres://u:hunter2@localhost:5432/shop?sslmode=disable":               "",
		"postgres://u:hunter2@[::1]:5432/shop":                                   "",
		"postgres:///shop?host=/var/run/postgresql":                              "",
		"host=/var/run/postgresql dbname=shop":                                   "",
		"host=127.0.0.1 dbname=shop":                                             "",
		"postgres://u:hunter2@127.0.0.1:5432,127.0.0.2:5432/shop":                "",
		"postgres://u:hunter2@db.example.com/shop":                               "db.example.com " + needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=disable":               "db.example.com " + needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=allow":                 needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=prefer":                needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=require":               needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=verify-ca":             needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=verify-full":           "",
		"postgres://u:hunter2@db/shop?sslmode=verify-full&sslrootcert=" + ca:     "",
		"postgres://u:hunter2@db/shop?sslmode=require&sslrootcert=" + ca:         needsTLS,
		"postgres://u:hunter2@db/shop?sslmode=verify-full&sslrootcert=/no/ca":    "a file that it names: open /no/ca",
		"postgres://u:hunter2@10.0.0.1/shop":                                     "10.0.0.1 " + needsTLS,
		"postgres://u:hunter2@[2001:db8::1]:5432/shop":                           "2001:db8::1 " + needsTLS,
		"postgres://u:hunter2@[2001:db8::1]:5432/shop?sslmode=verify-full":       "",
		"postgres://u:hunter2@127.0.0.1:5432,db.example.com:5432/shop":           "db.example.com " + needsTLS,
		"postgres://u:hunter2@db1:5432,db2:5432/shop?sslmode=verify-full":        "",
		"postgres://u:hunter2@localhost.example.com/shop":                        "localhost.example.com " + needsTLS,
		"postgres://u:hunter2@127.0.0.1.example.com/shop":                        needsTLS,
		"postgres://u:hunter2@db.example.com/shop?sslmode=nonsense":              "must be a URL",
		"postgres://u:hunter2@db.example.com:port/shop":                          "must be a URL",
		"mysql://u:hunter2@127.0.0.1/shop":                                       "must be a URL",
		"host=db.example.com dbname=shop user=u password=hunter2 sslmode=prefer": needsTLS,
	} {
		code, _, stderr := execute(t, inProcess(t, nil), []string{"config", "show"}, "POSTHASTE_DATABASE_URL="+url)
		if problem == "" && code != exitDone || problem != "" && (code != exitUsage || !strings.Contains(stderr, problem)) {
			t.Errorf("%s: exit code %d, want %q\n%s", url, code, problem, stderr)
		}
		// Programs beside a publisher refuse the same.
		err := CheckDatabaseURL(url)
		if (problem == "") != (err == nil) ||
			err != nil && (!strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: CheckDatabaseURL says %v, want %q", url, err, problem)
		}
		if !strings.Contains(problem, needsTLS) {
			continue
		}
		if code, _, stderr := execute(t, inProcess(t, nil), []string{"config", "show", "--insecure-allow=database"},
			"POSTHASTE_DATABASE_URL="+url); code != exitDone {
			t.Errorf("%s, allowed: exit code %d\n%s", url, code, stderr)
		}
		code, _, stderr = execute(t, inProcess(t, nil), []string{"config", "show", "--insecure-allow=here"}, nowhere,
			"POSTHASTE_DATABASE_LISTEN_URL="+url)
		if code != exitUsage || !strings.Contains(stderr, "database.listen_url: ") {
			t.Errorf("%s, for the doorbell: exit code %d\n%s", url, code, stderr)
		}
	}
	if code, _, stderr := execute(t, inProcess(t, nil), []string{"config", "show"}, nowhere,
		"POSTHASTE_DATABASE_LISTEN_URL=off"); code != exitDone {
		t.Errorf("off: exit code %d\n%s", code, stderr)
	}
}
