package access

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// exhaust uses up the attempts of an address.
func exhaust(t *testing.T, handler http.Handler, address string) {
	t.Helper()
	for range mostAttempts {
		wants(t, handler, from(address, login("oncall", "wrong")), http.StatusUnauthorized)
	}
}

func TestLockout(t *testing.T) {
	t.Parallel()
	text, token := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	const neighbour = "192.0.2.1:1" // of the same address
	wants(t, handler, from(neighbour, login("lead", other)), http.StatusOK)
	exhaust(t, handler, "192.0.2.1:4711")

	w := wants(t, handler, login("oncall", "wrong"), http.StatusTooManyRequests)
	if w.Header().Get("Retry-After") != "60" || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("header %v", w.Header())
	}
	wants(t, handler, login("oncall", password), http.StatusTooManyRequests) // or a guess would have an answer
	wants(t, handler, get("Authorization", "Bearer wrong"), http.StatusTooManyRequests)
	wants(t, handler, get("Authorization", "nonsense"), http.StatusTooManyRequests)
	wants(t, handler, get(), http.StatusUnauthorized) // a page without a secret is no attempt

	// Who was in already stays in, a token always works, and other addresses know nothing of it.
	wants(t, handler, from(neighbour, login("lead", other)), http.StatusOK)
	wants(t, handler, get("Authorization", "Bearer "+token), http.StatusOK)
	wants(t, handler, login("wall", token), http.StatusOK)
	wants(t, handler, from("192.0.2.2:4711", login("oncall", "wrong")), http.StatusUnauthorized)

	e.clock.pass(59500 * time.Millisecond)
	if w := wants(t, handler, login("oncall", "wrong"), http.StatusTooManyRequests); w.Header().Get("Retry-After") != "1" {
		t.Errorf("header %v", w.Header())
	}
	e.clock.pass(500 * time.Millisecond)
	wants(t, handler, login("oncall", password), http.StatusOK)
	exhaust(t, handler, "192.0.2.1:4711")
	wants(t, handler, login("oncall", "wrong"), http.StatusTooManyRequests)
}

// Every way to be wrong uses up attempts; what was right or had no secret does not.
func TestWhatCounts(t *testing.T) {
	t.Parallel()
	text, token := people(t)
	for name, c := range map[string]struct {
		r      *http.Request
		counts bool
	}{
		"a wrong password":  {login("oncall", "wrong"), true},
		"an unknown name":   {login("nobody", "wrong"), true},
		"an empty secret":   {login("oncall", ""), true},
		"a wrong token":     {get("Authorization", "Bearer wrong"), true},
		"no scheme":         {get("Authorization", "wrong"), true},
		"a right password":  {login("oncall", password), false},
		"a right token":     {get("Authorization", "Bearer "+token), false},
		"a page, no secret": {get(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, text)
			handler := e.guarded(e.users)
			for range mostAttempts {
				do(handler, c.r)
			}
			want := http.StatusOK
			if c.counts {
				want = http.StatusTooManyRequests
			}
			wants(t, handler, login("lead", other), want)
		})
	}
}

// Guesses that are sent at once are counted before any of them is answered.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	handler := e.guarded(e.users)
	synctest.Test(t, func(t *testing.T) {
		const guesses = 30
		e.users.slots, e.users.line = make(chan struct{}, atOnce), make(chan struct{}, guesses)
		release, codes := make(chan struct{}), make(chan int, guesses)
		e.users.derive = func(password string, salt []byte, iterations int) ([]byte, error) {
			<-release
			return derivePBKDF2(password, salt, iterations)
		}
		for i := range guesses {
			go func() { codes <- do(handler, login("oncall", strings.Repeat("x", i+1))).Code }()
		}
		synctest.Wait()
		close(release)
		got := map[int]int{}
		for range guesses {
			got[<-codes]++
		}
		if got[http.StatusUnauthorized] != mostAttempts || got[http.StatusTooManyRequests] != guesses-mostAttempts {
			t.Errorf("answers: %v", got)
		}
	})
}

// The last attempt locks for a whole minute, also where the first was long ago.
func TestLockIsAWholeMinute(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := newAttempts(c.Now)
	one := netip.MustParseAddr("192.0.2.1")
	for range mostAttempts - 1 {
		a.begin(one)
	}
	c.pass(50 * time.Second)
	if wait := a.begin(one); wait != 0 {
		t.Errorf("the last attempt waits %v", wait)
	}
	if wait := a.begin(one); wait != time.Minute {
		t.Errorf("the next one waits %v", wait)
	}
}

// Where there is no room, what was renewed last stays longest.
func TestFading(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	f := newFading[string, int](2)
	f.put("a", 1, start.Add(1), start)
	f.put("b", 2, start.Add(2), start)
	f.put("a", 3, start.Add(3), start)
	f.put("c", 4, start.Add(4), start)
	if _, _, kept := f.get("b", start); kept || len(f.by) != 2 {
		t.Errorf("b is the oldest, but it was kept: %v, of %d", kept, len(f.by))
	}
	if value, until, kept := f.get("a", start); !kept || value != 3 || !until.Equal(start.Add(3)) {
		t.Errorf("a is %d until %v", value, until)
	}
	if _, _, kept := f.get("c", start.Add(4)); kept {
		t.Error("c was kept when its time was over")
	}
}

// A slow trickle of failures locks nobody out.
func TestAttemptsAreForgotten(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := newAttempts(c.Now)
	one := netip.MustParseAddr("192.0.2.1")
	for range 10 * mostAttempts {
		for range mostAttempts - 1 {
			if wait := a.begin(one); wait != 0 {
				t.Fatalf("wait %v", wait)
			}
		}
		c.pass(window)
	}
	a.giveBack(netip.MustParseAddr("192.0.2.77")) // of whom nothing is known
	for range 3 * mostAttempts {
		if a.begin(one) != 0 {
			t.Fatal("what was given back counts")
		}
		a.giveBack(one)
	}
	c.pass(window)
	if a.begin(one); used(a, one) != 1 {
		t.Errorf("%d attempts", used(a, one))
	}
	if a.giveBack(one); len(a.used.by) != 0 {
		t.Errorf("%d addresses are kept", len(a.used.by))
	}
}

func used(a *attempts, from netip.Addr) int {
	n, _, _ := a.used.get(from, a.now())
	return n
}

func TestAddressesAreBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := newAttempts(c.Now)
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for i := range 2 * mostAddresses {
		a.begin(address(i))
		if len(a.used.by) > mostAddresses || a.used.order.Len() != len(a.used.by) {
			t.Fatalf("%d addresses, %d in order", len(a.used.by), a.used.order.Len())
		}
	}
	if used(a, address(0)) != 0 || used(a, address(2*mostAddresses-1)) != 1 {
		t.Error("the oldest address is the one that was kept")
	}
	c.pass(window)
	if a.begin(address(0)); len(a.used.by) != 1 {
		t.Errorf("%d addresses are kept, but all others are over", len(a.used.by))
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::",
		"[2001:db8:1:2::9]:80": "2001:db8:1:2::", "[fe80::1%eth0]:80": "fe80::", "@": "invalid IP", "": "invalid IP",
	} {
		if got := source(from(address, get())).String(); got != want {
			t.Errorf("%q: %s, want %s", address, got, want)
		}
	}
}
