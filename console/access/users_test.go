package access

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	password = "correct horse battery"
	other    = "another long password"
)

// people is a users file with two passwords and a token.
func people(t *testing.T) (text, token string) {
	t.Helper()
	token, stored := NewToken()
	return `{"users": [
		{"name": "oncall", "role": "operator", "secret": "` + hash(t, password) + `"},
		{"name": "lead", "role": "admin", "secret": "` + hash(t, other) + `"},
		{"name": "wall", "role": "viewer", "secret": "` + stored + `"},
		{"name": "proxied", "role": "admin"}]}`, token
}

func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	text, token := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	for want, r := range map[string]*http.Request{
		"oncall operator": login("oncall", password),
		"lead admin":      get("Authorization", strings.Replace(basicAuth("lead", other), "Basic", "bASIC", 1)),
		"wall viewer":     get("Authorization", "Bearer "+token),
	} {
		if w := wants(t, handler, r, http.StatusOK); w.Body.String() != want {
			t.Errorf("got %q, want %q", w.Body, want)
		}
	}
	wants(t, handler, login("wall", token), http.StatusOK)
	wants(t, handler, get("Authorization", "bearer "+token), http.StatusOK)
}

func TestWhoIsNot(t *testing.T) {
	t.Parallel()
	text, token := people(t)
	_, sum, _ := strings.Cut(text, `"sha256$`)
	stored := "sha256$" + sum[:64]
	unused, _ := NewToken()
	for name, r := range map[string]*http.Request{
		"wrong secret":                   login("oncall", password+"x"),
		"shorter secret":                 login("oncall", password[1:]),
		"empty secret":                   login("oncall", ""),
		"empty name":                     login("", password),
		"unknown name":                   login("nobody", password),
		"name in another case":           login("Oncall", password),
		"secret with another's name":     login("lead", password),
		"token with another's name":      login("oncall", token),
		"password with the token's name": login("wall", password),
		"user without a secret":          login("proxied", password),
		"no secret of no secret":         login("proxied", ""),
		"the hash itself":                login("wall", stored),
		"the hash as a token":            get("Authorization", "Bearer "+stored),
		"another token":                  get("Authorization", "Bearer "+unused),
		"a password as Bearer":           get("Authorization", "Bearer "+password),
		"a short password as Bearer":     get("Authorization", "Bearer hunter2"),
		"Bearer with two spaces":         get("Authorization", "Bearer  "+token),
		"Bearer with a space after":      get("Authorization", "Bearer "+token+" "),
		"Bearer with a tab":              get("Authorization", "Bearer\t"+token),
		"two tokens":                     get("Authorization", "Bearer "+token+" "+token),
		"Bearer alone":                   get("Authorization", "Bearer"),
		"Bearer and nothing":             get("Authorization", "Bearer "),
		"a token without a scheme":       get("Authorization", token),
		"an empty header":                get("Authorization", ""),
		"Basic in no base64":             get("Authorization", "Basic oncall:"+password),
		"Basic without a colon":          get("Authorization", "Basic b25jYWxs"),
		"another scheme":                 get("Authorization", "Digest "+token),
		"two headers":                    get("Authorization", "Bearer "+token, "Authorization", "Bearer "+token),
		"names of a proxy":               get("X-Forwarded-User", "lead", "X-Forwarded-Email", "lead"),
		"nothing":                        get(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, text)
			w := wants(t, e.guarded(e.users), r, http.StatusUnauthorized)
			if w.Header().Get("WWW-Authenticate") == "" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("header %v", w.Header())
			}
			if log := e.journal.String(); strings.Contains(log, password) || strings.Contains(log, token) ||
				strings.Contains(log, "hunter2") {
				t.Errorf("a secret is in the log: %s", log)
			}
		})
	}
}

// Whatever is wrong with a name and a secret is answered alike, after the same work.
func TestSameAnswerAndSameWork(t *testing.T) {
	t.Parallel()
	slow, err := hashPassword(password, 3*few, derivePBKDF2)
	if err != nil {
		t.Fatal(err)
	}
	_, stored := NewToken()
	e := newEnv(t, `{"users": [
		{"name": "slow", "role": "viewer", "secret": "`+slow+`"},
		{"name": "quick", "role": "viewer", "secret": "`+hash(t, other)+`"},
		{"name": "token", "role": "viewer", "secret": "`+stored+`"},
		{"name": "proxied", "role": "viewer"}]}`)
	var work int
	e.users.derive = func(password string, salt []byte, iterations int) ([]byte, error) {
		work += iterations
		return derivePBKDF2(password, salt, iterations)
	}
	handler := e.guarded(e.users)
	unknown := wants(t, handler, login("nobody", "x"), http.StatusUnauthorized)
	for _, name := range []string{"nobody", "slow", "quick", "token", "proxied"} {
		work = 0
		w := wants(t, handler, login(name, "wrong"), http.StatusUnauthorized)
		if work != 3*few {
			t.Errorf("%s: %d iterations, want %d", name, work, 3*few)
		}
		if w.Body.String() != unknown.Body.String() || fmt.Sprint(w.Header()) != fmt.Sprint(unknown.Header()) {
			t.Errorf("%s: %q %v, but an unknown name: %q %v", name, w.Body, w.Header(), unknown.Body, unknown.Header())
		}
	}
}

// A password is meant to be slow, and a browser sends it with every request: it is worked on once.
func TestPasswordIsProvenOnce(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	handler, proofs := e.guarded(e.users), 0
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e.users.derive = func(password string, salt []byte, iterations int) ([]byte, error) {
			proofs++
			<-release
			return derivePBKDF2(password, salt, iterations)
		}
		for range 20 {
			go func() {
				if w := do(handler, login("oncall", password)); w.Code != http.StatusOK {
					t.Errorf("got %d", w.Code)
				}
			}()
		}
		synctest.Wait() // all of them wait for the one proof
		close(release)
	})
	e.users.derive = func(password string, salt []byte, iterations int) ([]byte, error) {
		proofs++
		return derivePBKDF2(password, salt, iterations)
	}
	e.clock.pass(14 * time.Minute)
	wants(t, handler, login("oncall", password), http.StatusOK)
	e.clock.pass(14 * time.Minute)
	wants(t, handler, login("oncall", password), http.StatusOK)
	if proofs != 1 {
		t.Errorf("%d proofs of one password", proofs)
	}
	e.clock.pass(15 * time.Minute)
	wants(t, handler, login("oncall", password), http.StatusOK)
	if proofs != 2 {
		t.Errorf("%d proofs, but the first is over", proofs)
	}
	wants(t, handler, login("lead", password), http.StatusUnauthorized)
}

// Only so many passwords are worked on at once; the others are sent away, and lose no attempt by it.
func TestPasswordsAtOnce(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	for range atOnce + inLine {
		e.users.line <- struct{}{}
	}
	handler := e.guarded(e.users)
	for range 3 * mostAttempts {
		w := wants(t, handler, login("oncall", password), http.StatusServiceUnavailable)
		if w.Header().Get("Retry-After") != "1" {
			t.Fatalf("header %v", w.Header())
		}
	}
	for range atOnce + inLine {
		<-e.users.line
	}
	wants(t, handler, login("oncall", password), http.StatusOK)
}

// A proof that panics lets nobody in, and leaves nobody waiting.
func TestPanicInAProof(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	e.users.derive = func(string, []byte, int) ([]byte, error) { panic("no memory") }
	handler := e.guarded(e.users)
	func() {
		defer func() { _ = recover() }()
		do(handler, login("oncall", other))
	}()
	e.users.derive = derivePBKDF2
	wants(t, handler, login("oncall", other), http.StatusUnauthorized)
	wants(t, handler, login("oncall", password), http.StatusOK)
}

func TestProofsAreBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	p := newProven(c.Now)
	first := p.of("0", "x", "y")
	for i := range 2 * mostProven {
		if denial := p.check(p.of(fmt.Sprint(i), "x", "y"), func() *Denial { return nil }); denial != nil {
			t.Fatal(denial)
		}
		c.pass(time.Millisecond)
	}
	if len(p.right.by) != mostProven || p.right.order.Len() != mostProven {
		t.Errorf("%d proofs are kept", len(p.right.by))
	}
	if _, _, kept := p.right.get(first, c.Now()); kept {
		t.Error("the oldest proof is the one that was kept")
	}
	if p.of("a", "bc", "d") == p.of("ab", "c", "d") || p.of("a", "b", "cd") == p.of("a", "bc", "d") {
		t.Error("a name and a secret run into each other")
	}
	if p.of("a", "b", "c") == newProven(c.Now).of("a", "b", "c") {
		t.Error("two processes have one key")
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	token, hashed := NewToken()
	first, second := hash(t, password), hash(t, other)
	file := func(role, secret, wall string) string {
		return fmt.Sprintf(`{"users": [{"name": "oncall", "role": %-10q, "secret": %q},
			{"name": %q, "role": "viewer", "secret": %q}]}`, role, secret, wall, hashed)
	}
	e := newEnv(t, file("operator", first, "wall"))
	handler := e.guarded(e.users)
	change := func(text string) { // all of one length, and in the same tick of the file system's clock
		t.Helper()
		writeFile(t, e.path, text)
		if err := os.Chtimes(e.path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	role := func(want string) {
		t.Helper()
		if w := wants(t, handler, login("oncall", password), http.StatusOK); w.Body.String() != "oncall "+want {
			t.Errorf("got %q, want %s", w.Body, want)
		}
	}
	role("operator")
	change(file("viewer", first, "wall"))
	role("operator") // it is not looked at more often than every two seconds
	e.clock.pass(lookEvery)
	role("viewer")
	change(file("admin", first, "wall"))
	e.clock.pass(lookEvery)
	role("admin")

	// A changed secret ends what was proven with the old one.
	change(file("admin", second, "wall"))
	e.clock.pass(lookEvery)
	wants(t, handler, login("oncall", password), http.StatusUnauthorized)
	wants(t, handler, login("oncall", other), http.StatusOK)

	// A token is the one of whom the file says, and of nobody when they are gone.
	bearer := get("Authorization", "Bearer "+token)
	change(file("admin", second, "door"))
	e.clock.pass(lookEvery)
	if w := wants(t, handler, bearer, http.StatusOK); w.Body.String() != "door viewer" {
		t.Errorf("got %q", w.Body)
	}
	change(`{"users": [{"name": "oncall", "role": "viewer"}]}`)
	e.clock.pass(lookEvery)
	wants(t, handler, bearer, http.StatusUnauthorized)
	wants(t, handler, login("oncall", other), http.StatusUnauthorized)
	if got := e.journal.count("a changed file is in use"); got != 5 {
		t.Errorf("%d changes in the log, want 5", got)
	}
}

func TestBrokenReload(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	look := func(times int) {
		t.Helper()
		for range times {
			e.clock.pass(lookEvery)
			wants(t, handler, login("oncall", password), http.StatusOK)
		}
	}
	const line = "a changed file is not in order"
	writeFile(t, e.path, `{"users": [{"name": "oncall"`)
	look(3)
	if got := e.journal.count(line); got != 1 {
		t.Errorf("%d lines of a broken file, want 1:\n%s", got, e.journal)
	}
	writeFile(t, e.path, `{"users": []}`) // broken in another way
	look(3)
	if err := os.Chmod(e.path, 0o644); err != nil {
		t.Fatal(err)
	}
	look(3)
	if err := os.Remove(e.path); err != nil {
		t.Fatal(err)
	}
	look(3)
	if got := e.journal.count(line); got != 4 {
		t.Errorf("%d lines of four faults:\n%s", got, e.journal)
	}
	writeFile(t, e.path, text) // what was there before is no change
	look(2)
	writeFile(t, e.path, strings.Replace(text, `"oncall"`, `"another"`, 1))
	e.clock.pass(lookEvery)
	wants(t, handler, login("oncall", password), http.StatusUnauthorized)
	wants(t, handler, login("another", password), http.StatusOK)
}

// Production demands many iterations of a file and of a comparison. They are counted here and not done: with the race
// detector they take half a minute.
func TestAsInProduction(t *testing.T) {
	t.Parallel()
	if _, err := HashPassword("elevenchars"); err == nil {
		t.Error("a short password was hashed")
	}
	var work int
	quick := func(password string, salt []byte, iterations int) ([]byte, error) {
		work += iterations
		return derivePBKDF2(password, salt, 1)
	}
	stored, err := hashPassword(password, iterations, quick)
	if err != nil || !strings.HasPrefix(stored, "pbkdf2-sha256$600000$") {
		t.Fatal(stored, err)
	}
	file := func(secret string) UsersConfig {
		return UsersConfig{File: usersFile(t, `{"users": [{"name": "oncall", "role": "viewer", "secret": "`+secret+`"}]}`)}
	}
	if _, err := OpenUsers(file(strings.Replace(stored, "600000", "599999", 1))); err == nil {
		t.Error("a hash that is quick to guess at was taken")
	}
	users, err := OpenUsers(file(stored))
	if err != nil {
		t.Fatal(err)
	}
	users.derive, work = quick, 0
	handler := Middleware(users, Options{})(whoami)
	wants(t, handler, login("oncall", password), http.StatusOK)
	wants(t, handler, login("nobody", password), http.StatusUnauthorized)
	if work != 2*600_000 {
		t.Errorf("%d iterations for two comparisons", work)
	}
}

// The hash is the one that everybody calls PBKDF2 with SHA-256: these values are known.
func TestKnownHashes(t *testing.T) {
	t.Parallel()
	for iterations, want := range map[int]string{
		1: "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b",
		2: "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43",
	} {
		if key, err := derivePBKDF2("password", []byte("salt"), iterations); err != nil || hex.EncodeToString(key) != want {
			t.Errorf("%d: %x, %v", iterations, key, err)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	token, hashed := NewToken()
	again, _ := NewToken()
	if token == again || !strings.HasPrefix(token, "pht_") || len(token) != 4+43 || strings.Contains(hashed, token[4:]) {
		t.Errorf("NewToken: %d characters, %q", len(token), hashed)
	}
	parsed, err := parseStored(hashed, iterations)
	if err != nil || !parsed.matchesToken(tokenSum(token)) || parsed.matchesToken(tokenSum(again)) || parsed.isPassword() {
		t.Errorf("a token does not match its own hash: %v", err)
	}
	short, long := "pht_"+strings.Repeat("A", 42), "pht_"+strings.Repeat("A", 44)
	for _, weak := range []string{"", "pht_", "hunter2", short, long, token[4:]} {
		if tokenSum(weak) != nil {
			t.Errorf("%q counts as a token", weak)
		}
	}
	if (stored{}).matchesToken(nil) || (stored{}).matchesToken(tokenSum(token)) {
		t.Error("a user without a secret has one that matches")
	}
}
