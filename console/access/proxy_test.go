package access

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

const (
	proxySecret = "0123456789abcdef0123456789abcdef"
	inside      = "10.1.2.3:4711"
	outside     = "192.0.2.1:4711"
)

const proxyUsers = `{
	"users": [{"name": "oncall@example.com", "role": "operator", "payloads": true, "outboxes": ["orders"]}],
	"groups": [{"name": "admins", "role": "admin", "tenants": ["acme"]}, {"name": "everybody", "role": "viewer"}]}`

// newProxy is the mode with a proxy in 10.0.0.0/8.
func newProxy(t *testing.T, e *env, change ...func(*ProxyConfig)) *Proxy {
	t.Helper()
	config := ProxyConfig{
		From:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")},
		Secret: proxySecret, Users: e.users, now: e.clock.Now,
	}
	for _, c := range change {
		c(&config)
	}
	proxy, err := NewProxy(config)
	if err != nil {
		t.Fatal(err)
	}
	return proxy
}

// passed is a request as the proxy passes it on, with more headers.
func passed(user string, headers ...string) *http.Request {
	own := []string{"X-Forwarded-User", user, "X-Posthaste-Proxy-Secret", proxySecret}
	return from(inside, get(append(own, headers...)...))
}

func TestProxy(t *testing.T) {
	t.Parallel()
	e := newEnv(t, proxyUsers)
	handler := e.guarded(newProxy(t, e))
	for want, r := range map[string]*http.Request{
		"oncall@example.com operator": passed("oncall@example.com", "X-Forwarded-Groups", "admins"), // their own entry counts
		"a@example.com admin":         passed("a@example.com", "X-Forwarded-Groups", "everybody, admins"),
		"b@example.com viewer":        passed("b@example.com", "X-Forwarded-Groups", "everybody"),
		"c@example.com viewer": from("[2001:db8:1::5]:80", get("X-Forwarded-User", "c@example.com", "X-Forwarded-Groups",
			"x,everybody", "Authorization", basicAuth("c@example.com", proxySecret))), // as oauth2-proxy sends it
		"d@example.com viewer": from("[::ffff:10.9.9.9]:80", passed("d@example.com", "X-Forwarded-Groups", "everybody")),
	} {
		if w := wants(t, handler, r, http.StatusOK); w.Body.String() != want {
			t.Errorf("got %q, want %q", w.Body, want)
		}
	}
}

func TestHeadersThatAreNotBelieved(t *testing.T) {
	t.Parallel()
	with := func(address string, headers ...string) *http.Request {
		return from(address, get(append([]string{"X-Forwarded-User", "oncall@example.com"}, headers...)...))
	}
	const secret = "X-Posthaste-Proxy-Secret"
	right := basicAuth("oncall@example.com", proxySecret)
	for name, r := range map[string]*http.Request{
		"unlisted network":           with(outside, secret, proxySecret),
		"unlisted network, IPv6":     with("[2001:db8:2::1]:80", secret, proxySecret),
		"mapped into IPv6":           with("[::ffff:192.0.2.1]:80", secret, proxySecret),
		"an address like the proxy":  with("[::10.1.2.3]:80", secret, proxySecret),
		"the proxy in a header":      with(outside, secret, proxySecret, "X-Forwarded-For", "10.1.2.3", "Via", "10.1.2.3"),
		"loopback, which is not in":  with("127.0.0.1:80", secret, proxySecret),
		"no address":                 with("@", secret, proxySecret),
		"no secret":                  with(inside),
		"empty secret":               with(inside, secret, ""),
		"wrong secret":               with(inside, secret, proxySecret+"0"),
		"half a secret":              with(inside, secret, proxySecret[:16]),
		"two secrets":                with(inside, secret, proxySecret, secret, proxySecret),
		"wrong, and right as Basic":  with(inside, secret, "x", "Authorization", right),
		"secret as Bearer":           with(inside, "Authorization", "Bearer "+proxySecret),
		"wrong secret as Basic":      with(inside, "Authorization", basicAuth("oncall@example.com", "x")),
		"Basic with another name":    with(inside, "Authorization", basicAuth("b@example.com", proxySecret)),
		"Basic with the name's case": with(inside, "Authorization", basicAuth("Oncall@example.com", proxySecret)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, proxyUsers)
			w := wants(t, e.guarded(newProxy(t, e)), r, http.StatusForbidden)
			if w.Header().Get("WWW-Authenticate") != "" || strings.Contains(e.journal.String(), proxySecret) {
				t.Errorf("header %v, log %s", w.Header(), e.journal)
			}
		})
	}
}

func TestUsersThatTheProxyDoesNotName(t *testing.T) {
	t.Parallel()
	const secret = "X-Posthaste-Proxy-Secret"
	e := newEnv(t, proxyUsers)
	proxy := newProxy(t, e)
	for name, r := range map[string]*http.Request{
		"unknown":               passed("b@example.com"),
		"another case":          passed("Oncall@example.com"),
		"unknown group":         passed("b@example.com", "X-Forwarded-Groups", "Everybody,everybod,every body"),
		"a group as name":       passed("everybody"),
		"groups of two headers": passed("b@example.com", "X-Forwarded-Groups", "x", "X-Forwarded-Groups", "everybody"),
		"empty name":            passed("", "X-Forwarded-Groups", "everybody"),
		"no name":               from(inside, get(secret, proxySecret, "X-Forwarded-Groups", "everybody")),
		"two names":             passed("oncall@example.com", "X-Forwarded-User", "oncall@example.com"),
		"two names in one":      passed("b@example.com,oncall@example.com", "X-Forwarded-Groups", "everybody"),
		"a hidden character":    passed("b\u202e@example.com", "X-Forwarded-Groups", "everybody"),
		"an endless name":       passed(strings.Repeat("b", 257), "X-Forwarded-Groups", "everybody"),
		"another header":        from(inside, get(secret, proxySecret, "X-Forwarded-Email", "oncall@example.com")),
	} {
		// The proxy knows who it is, so there is nothing to guess: it is not locked out, and everybody else with it.
		handler := e.guarded(proxy)
		for range 3 * mostAttempts {
			if w := do(handler, r); w.Code != http.StatusForbidden {
				t.Fatalf("%s: got %d %q", name, w.Code, w.Body)
			}
		}
	}
	wants(t, e.guarded(proxy), passed("oncall@example.com"), http.StatusOK)
}

// Guesses at the proxy's secret are limited, also from the proxy's own network; the proxy goes on.
func TestProxyLockout(t *testing.T) {
	t.Parallel()
	e := newEnv(t, proxyUsers)
	handler := e.guarded(newProxy(t, e))
	for _, address := range []string{inside, outside} {
		for range mostAttempts {
			wants(t, handler, from(address, get("X-Forwarded-User", "oncall@example.com")), http.StatusForbidden)
		}
		wants(t, handler, from(address, get()), http.StatusTooManyRequests)
	}
	wants(t, handler, passed("oncall@example.com"), http.StatusOK)
	wants(t, handler, from(outside, passed("oncall@example.com")), http.StatusTooManyRequests)
}

func TestProxyWithItsOwnHeaders(t *testing.T) {
	t.Parallel()
	e := newEnv(t, proxyUsers)
	handler := e.guarded(newProxy(t, e, func(c *ProxyConfig) {
		c.From = []netip.Prefix{netip.MustParsePrefix("::ffff:10.1.2.3/128"), netip.MustParsePrefix("fe80::1/128")}
		c.Secret = ""
		c.UserHeader, c.GroupsHeader = "x-forwarded-email", "Remote-Groups"
	}))
	r := from(inside, get("X-Forwarded-Email", "b@example.com", "Remote-Groups", "admins"))
	if w := wants(t, handler, r, http.StatusOK); w.Body.String() != "b@example.com admin" {
		t.Errorf("got %q", w.Body)
	}
	wants(t, handler, from("[fe80::1%eth0]:1", r), http.StatusOK)
	wants(t, handler, from("10.1.2.4:1", r), http.StatusForbidden)
	wants(t, handler, passed("oncall@example.com"), http.StatusForbidden)
}

// Somebody who is in two groups is what the file's first one says, and not the sum of both.
func TestGroupsAreNotAddedUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t, proxyUsers)
	user, err := newProxy(t, e).Authenticate(passed("b@example.com", "X-Forwarded-Groups", "everybody,admins"))
	if err != nil || user.Role != Admin || user.MaySeeTenant("other") || user.Name != "b@example.com" {
		t.Errorf("%+v, %v", user, err)
	}
}

func TestProxyConfigurations(t *testing.T) {
	t.Parallel()
	e := newEnv(t, proxyUsers)
	one, all := netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("0.0.0.0/0")
	all6, mapped := netip.MustParsePrefix("::/0"), netip.MustParsePrefix("::ffff:0.0.0.0/96")
	for want, config := range map[string]ProxyConfig{
		"networks are missing":   {Users: e.users},
		"needs a users file":     {From: []netip.Prefix{one}},
		"is not one":             {Users: e.users, From: []netip.Prefix{{}}},
		"every address there is": {Users: e.users, From: []netip.Prefix{one, all}, Secret: proxySecret},
		"::/0 is every":          {Users: e.users, From: []netip.Prefix{all6}, Secret: proxySecret},
		"96 is every":            {Users: e.users, From: []netip.Prefix{mapped}, Secret: proxySecret},
		"more than one address":  {Users: e.users, From: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/31")}},
		"at least 32":            {Users: e.users, From: []netip.Prefix{one}, Secret: proxySecret[1:]},
		"not Authorization":      {Users: e.users, From: []netip.Prefix{one}, UserHeader: "authorization"},
		"another one for":        {Users: e.users, From: []netip.Prefix{one}, UserHeader: "X-Name", GroupsHeader: "x-name"},
		`header "X_name"`:        {Users: e.users, From: []netip.Prefix{one}, UserHeader: "X_Name"},
	} {
		if _, err := NewProxy(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	got, err := ParseNetworks("10.0.0.0/8, 192.0.2.7,2001:db8::/32,::1")
	if err != nil || len(got) != 4 || got[1].String() != "192.0.2.7/32" || got[3].String() != "::1/128" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "10.0.0.0/8,", "10.0.0.0/33", "proxy.example.com", "10.0.0", "fe80::1%eth0"} {
		if _, err := ParseNetworks(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
