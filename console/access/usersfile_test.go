package access

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestUsersFile(t *testing.T) {
	t.Parallel()
	_, token := NewToken()
	parsed, err := parseUsers([]byte(`{
		"users": [
			{"name": "oncall@example.com", "role": "admin", "payloads": true, "tenants": ["acme"], "outboxes": ["orders"],
			 "secret": "`+hash(t, "a password")+`"},
			{"name": "wall", "role": "viewer", "secret": "`+token+`"},
			{"name": "through-the-proxy", "role": "operator"}
		],
		"groups": [{"name": "developers", "role": "viewer"}]
	}`), few)
	if err != nil {
		t.Fatal(err)
	}
	user := parsed.accounts["oncall@example.com"].user
	if user.Role != Admin || !user.Payloads || !user.MaySee("orders") || user.MaySee("other") ||
		user.MaySeeTenant("other") {
		t.Errorf("read as %+v", user)
	}
	if user := parsed.accounts["wall"].user; user.Role != Viewer || user.Payloads || !user.MaySee("other") {
		t.Errorf("read as %+v", user)
	}
	if len(parsed.accounts) != 3 || len(parsed.groups) != 1 {
		t.Errorf("%d accounts, %d groups", len(parsed.accounts), len(parsed.groups))
	}
}

func TestUsersFileOutOfOrder(t *testing.T) {
	t.Parallel()
	_, token := NewToken()
	slow, secret := hash(t, "a password"), func(text string) string {
		return `{"users": [{"name": "a", "role": "viewer", "secret": "` + text + `"}]}`
	}
	for text, want := range map[string]string{
		``:                                "EOF",
		`[]`:                              "cannot unmarshal",
		`{"users": [`:                     "EOF",
		`{}`:                              "no users",
		`null`:                            "no users",
		`{"users": []}`:                   "no users",
		`{"users": [{"role": "viewer"}]}`: `name ""`,
		`{"users": [{"name": "a"}]}`:      `"a" has no role`,
		`{"users": [{"name": "a", "role": null}]}`:                                      "has no role",
		`{"users": [{"name": "a", "role": ""}]}`:                                        `role ""`,
		`{"users": [{"name": "a", "role": "root"}]}`:                                    `role "root": must be`,
		`{"users": [{"name": "a", "role": 3}]}`:                                         "cannot unmarshal",
		`{"users": [{"name": "a:b", "role": "viewer"}]}`:                                "colons",
		`{"users": [{"name": "a", "role": "viewer", "payload": true}]}`:                 `unknown field "payload"`,
		`{"user": [{"name": "a", "role": "viewer"}]}`:                                   `unknown field "user"`,
		`{"users": [{"name": "a", "role": "viewer", "role": "admin"}]}`:                 `"role" is there twice`,
		`{"users": [{"name": "a", "role": "viewer", "ROLE": "admin"}]}`:                 `"role" is there twice`,
		`{"users": [{"name": "a", "role": "viewer", "secret": "x", "ſecret": "y"}]}`:    `"secret" is there twice`,
		`{"users": [{"name": "a", "role": "viewer"}], "users": []}`:                     `"users" is there twice`,
		`{"users": [{"name": "a", "role": "viewer"}, {"name": "a", "role": "admin"}]}`:  `called "a" too`,
		`{"users": [{"name": "a", "role": "viewer", "tenants": []}]}`:                   "leave it out",
		`{"users": [{"name": "a", "role": "viewer", "tenants": null}]}`:                 "leave it out",
		`{"users": [{"name": "a", "role": "viewer", "outboxes": [""]}]}`:                "an empty name",
		`{"users": [{"name": "a", "role": "viewer", "outboxes": "orders"}]}`:            "list of names",
		`{"users": [{"name": "a", "role": "viewer"}]} {"users": []}`:                    "follows its end",
		`{"groups": [{"name": "g", "role": "viewer", "secret": "x"}]}`:                  "a group has no secret",
		`{"groups": [{"name": "g", "role": "viewer"}, {"name": "g", "role": "admin"}]}`: `group is called "g" too`,
		`{"users": [{"name": "a", "role": "viewer", "secret": "` + token + `"},
		            {"name": "b", "role": "viewer", "secret": "` + token + `"}]}`: "the same secret",
		secret("hunter2hunter2"):         "must begin with",
		secret("sha256$abc"):             "64 hexadecimal digits",
		secret("pbkdf2-sha256$100$AAAA"): "ITERATIONS$SALT$HASH",
		secret("pbkdf2-sha256$99" + slow[strings.LastIndex(slow[:20], "$"):]):       "between 100 and",
		secret("pbkdf2-sha256$10000001" + slow[strings.LastIndex(slow[:20], "$"):]): "between 100 and",
		secret("pbkdf2-sha256$100$AAAA$" + slow[strings.LastIndex(slow, "$")+1:]):   "the salt",
		secret(slow[:strings.LastIndex(slow, "$")] + "$"):                           "the hash",
	} {
		if _, err := parseUsers([]byte(text), few); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n\tgot %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
	if _, err := parseUsers([]byte(secret(slow)), iterations); err == nil {
		t.Error("a hash that is quick to guess at was taken")
	}
}

// All problems are named at once, by the entry.
func TestUsersFileNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := parseUsers([]byte(`{
		"users": [{"name": "a"}, {"name": "b", "role": "viewer"}, {"name": "b", "role": "viewer"}],
		"groups": [{"role": "viewer"}]}`), few)
	for _, part := range []string{"users, entry 1", "users, entry 3", "groups, entry 1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestFileModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the mode of a file says nothing here")
	}
	path := usersFile(t, `{"users": [{"name": "a", "role": "viewer"}]}`)
	for mode, want := range map[os.FileMode][2]bool{ // without and with the group's right to read
		0o600: {true, true}, 0o400: {true, true}, 0o640: {false, true}, 0o440: {false, true}, 0o660: {false, false},
		0o610: {false, false}, 0o604: {false, false}, 0o602: {false, false}, 0o601: {false, false}, 0o644: {false, false},
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for group, ok := range want {
			_, err := OpenUsers(UsersConfig{File: path, GroupMayRead: group == 1})
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod") {
				t.Errorf("mode %04o, for the group too: %v: %v", mode, group == 1, err)
			}
			if _, err := ReadSecret(path, group == 1); (err == nil) != ok {
				t.Errorf("ReadSecret, mode %04o: %v", mode, err)
			}
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	large, empty, secret := filepath.Join(folder, "large"), filepath.Join(folder, "empty"), filepath.Join(folder, "secret")
	writeFile(t, large, strings.Repeat(" ", 1<<20+1))
	writeFile(t, empty, "\r\n")
	writeFile(t, secret, " s3cret \r\n")
	for path, want := range map[string]string{
		folder: "not a regular file", large: "larger than", empty: "is empty", filepath.Join(folder, "none"): "no such file",
	} {
		if _, err := ReadSecret(path, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if got, err := ReadSecret(secret, false); err != nil || got != " s3cret " {
		t.Errorf("ReadSecret = %q, %v", got, err)
	}
}
