package access

import (
	"net/http"
	"testing"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	handler := newEnv(t, `{"users": [{"name": "x", "role": "viewer"}]}`).guarded(Local(User{Role: Operator}))
	request := func(address, host string, headers ...string) *http.Request {
		r := from(address, get(headers...))
		r.Host = host
		return r
	}
	for _, host := range []string{
		"localhost", "LOCALHOST:8087", "127.0.0.1", "127.0.0.1:8087", "127.9.9.9", "[::1]", "[::1]:8087", "::1",
		"[::ffff:127.0.0.1]:1",
	} {
		if w := wants(t, handler, request("127.0.0.1:5", host), http.StatusOK); w.Body.String() != "local operator" {
			t.Errorf("%s: %q", host, w.Body)
		}
	}
	for _, host := range []string{
		"", "rebind.example.com", "rebind.example.com:8087", "localhost.example.com", "127.0.0.1.nip.example",
		"0.0.0.0", "[::]:8087",
		"10.0.0.1:8087", "127.1", "2130706433", "localhost:8087@rebind.example.com", "a.localhost", "localhost.",
		"console.example.com",
	} {
		w := wants(t, handler, request("127.0.0.1:5", host), http.StatusForbidden)
		if w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("%s: no secret would help", host)
		}
	}
	for _, address := range []string{"192.0.2.1:5", "[2001:db8::1]:5", "", "@", "127.0.0.1"} {
		wants(t, handler, request(address, "localhost"), http.StatusForbidden)
	}
	wants(t, handler, request("[::ffff:127.0.0.1]:5", "localhost"), http.StatusOK)
	wants(t, handler, request("[::1]:5", "localhost"), http.StatusOK)
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"} {
		wants(t, handler, request("127.0.0.1:5", "localhost", header, "192.0.2.9"), http.StatusForbidden)
	}
}

// A mode that was given no role lets nobody in, and so does no mode.
func TestLocalWithoutARole(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Local(User{}), nil} {
		r := from("127.0.0.1:5", get())
		r.Host = "localhost"
		wants(t, Middleware(mode, Options{})(whoami), r, http.StatusForbidden)
	}
}
