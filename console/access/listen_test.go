package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// nameService knows some names.
func nameService(of map[string]string) func(context.Context, string, string) ([]netip.Addr, error) {
	return func(_ context.Context, _, host string) (addresses []netip.Addr, err error) {
		list, known := of[host]
		if !known {
			return nil, errors.New("no such host")
		}
		for part := range strings.FieldsSeq(list) {
			addresses = append(addresses, netip.MustParseAddr(part))
		}
		return addresses, nil
	}
}

func TestWhereItListens(t *testing.T) {
	t.Parallel()
	resolve := nameService(map[string]string{
		"localhost": "127.0.0.1 ::1", "me": "::1", "mapped": "::ffff:127.0.0.1", "server": "192.0.2.1",
		"both": "127.0.0.1 192.0.2.1", "empty": "",
	})
	const users, plain, local = "no users", "plain text", ""
	for address, want := range map[string]struct{ local, users, opened string }{
		":8087":                   {local, "", "127.0.0.1:8087"},
		"127.0.0.1:8087":          {local, "", "127.0.0.1:8087"},
		"127.3.2.1:0":             {local, "", "127.3.2.1:0"},
		"[::1]:8087":              {local, "", "[::1]:8087"},
		"[::ffff:127.0.0.1]:8087": {local, "", "127.0.0.1:8087"},
		"localhost:8087":          {local, "", "127.0.0.1:8087"}, // the address, and not a name that may change its meaning
		"me:8087":                 {local, "", "[::1]:8087"},
		"mapped:8087":             {local, "", "127.0.0.1:8087"},
		"0.0.0.0:8087":            {users, plain, "0.0.0.0:8087"},
		"[::]:8087":               {users, plain, "[::]:8087"},
		"[::ffff:0.0.0.0]:8087":   {users, plain, "[::ffff:0.0.0.0]:8087"},
		"192.0.2.1:8087":          {users, plain, "192.0.2.1:8087"},
		"[::ffff:192.0.2.1]:8087": {users, plain, "[::ffff:192.0.2.1]:8087"},
		"server:8087":             {users, plain, "server:8087"},
		"both:8087":               {users, plain, "both:8087"},
		"unknown:8087":            {"no such host", "no such host", ""},
		"empty:8087":              {"has no address", "has no address", ""},
		"127.1:8087":              {"no such host", "no such host", ""},
		"127.0.0.1":               {"HOST:PORT", "HOST:PORT", ""},
		"":                        {"HOST:PORT", "HOST:PORT", ""},
		"::1:8087":                {"HOST:PORT", "HOST:PORT", ""},
	} {
		check := func(what string, at Listening, loopbackOnly bool, problem string) {
			t.Helper()
			at.Address, at.resolve = address, resolve
			opened, err := at.address(t.Context(), loopbackOnly)
			switch {
			case problem != "" && (err == nil || !strings.Contains(err.Error(), problem)):
				t.Errorf("%q, %s: %q, %v; want %q", address, what, opened, err, problem)
			case problem == "" && (err != nil || opened != want.opened):
				t.Errorf("%q, %s: %q, %v; want %q", address, what, opened, err, want.opened)
			}
		}
		allowed := want.users
		if allowed == plain {
			allowed = ""
		}
		check("without users", Listening{}, true, want.local)
		check("without users, with TLS", Listening{TLS: &tls.Config{}, AllowPlainHTTP: true}, true, want.local)
		check("with users", Listening{}, false, want.users)
		check("with users and TLS", Listening{TLS: &tls.Config{}}, false, allowed)
		check("with users in plain text", Listening{AllowPlainHTTP: true}, false, allowed)
	}
}

// Every mode says by itself where it may be.
func TestModesListen(t *testing.T) {
	t.Parallel()
	text, _ := people(t)
	e := newEnv(t, text)
	for name, c := range map[string]struct {
		mode Mode
		at   Listening
		ok   bool
	}{
		"local":                   {Local(User{Role: Admin}), Listening{Address: ":0"}, true},
		"local, everywhere":       {Local(User{Role: Admin}), Listening{Address: "0.0.0.0:0", AllowPlainHTTP: true}, false},
		"nobody, everywhere":      {nil, Listening{Address: "0.0.0.0:0", AllowPlainHTTP: true}, false},
		"users":                   {e.users, Listening{Address: "localhost:0"}, true},
		"users, everywhere":       {e.users, Listening{Address: "0.0.0.0:0"}, false},
		"proxy, everywhere":       {newProxy(t, e), Listening{Address: "[::]:0"}, false},
		"proxy, allowed in plain": {newProxy(t, e), Listening{Address: "0.0.0.0:0", AllowPlainHTTP: true}, true},
	} {
		listener, err := Listen(t.Context(), c.mode, c.at)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			listener.Close()
		}
	}
	taken, err := Listen(t.Context(), e.users, Listening{Address: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Listen(t.Context(), e.users, Listening{Address: taken.Addr().String()}); err == nil {
		t.Error("an address that is in use was opened")
	}
}

// served answers until the test ends it, and returns what Serve did.
func served(t *testing.T, listener net.Listener, handler http.Handler) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, handler, nil) }()
	t.Cleanup(cancel)
	return func() error { cancel(); return <-ended }
}

// closing says when a listener was closed.
type closing struct {
	net.Listener
	closed chan struct{}
	once   sync.Once
}

func (l *closing) Close() error {
	defer l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A request that is under way when the console ends has its answer.
func TestServe(t *testing.T) {
	t.Parallel()
	opened, err := Listen(t.Context(), Local(User{Role: Viewer}), Listening{Address: "localhost:0"})
	if err != nil {
		t.Fatal(err)
	}
	listener := &closing{Listener: opened, closed: make(chan struct{})}
	begun, goOn := make(chan struct{}), make(chan struct{})
	end := served(t, listener, Middleware(Local(User{Role: Viewer}), Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-goOn
			whoami(w, r)
		})))
	answer, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answer <- string(text)
	}()
	<-begun
	go func() { ended <- end() }()
	<-listener.closed
	close(goOn)
	if got := <-answer; got != "local viewer" {
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// piped is a listener without a network, whose clock can be that of a bubble.
type piped struct {
	net.Listener
	connections chan net.Conn
	ended       chan struct{}
	once        sync.Once
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case connection := <-p.connections:
		return connection, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}
func (p *piped) Close() error   { p.once.Do(func() { close(p.ended) }); return nil }
func (p *piped) Addr() net.Addr { return &net.UnixAddr{} }

// What does not end by itself is ended after 5 seconds.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		listener := &piped{connections: make(chan net.Conn, 1), ended: make(chan struct{})}
		listener.connections <- server
		var over atomic.Bool
		end := served(t, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			over.Store(true)
		}))
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := time.Now()
		if err := end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took != lastAnswers {
			t.Errorf("it took %v", took)
		}
		if synctest.Wait(); !over.Load() {
			t.Error("the request goes on")
		}
	})
}

// Somebody who sends slowly does not keep a connection.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	for beginning, most := range map[string]time.Duration{
		"": 5 * time.Second, "GET / HTTP/1.1\r\n": 5 * time.Second,
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n": 15 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			listener := &piped{connections: make(chan net.Conn, 1), ended: make(chan struct{})}
			listener.connections <- server
			read := make(chan error, 1)
			end := served(t, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				read <- err
			}))
			before := time.Now()
			go func() { _, _ = io.WriteString(client, beginning) }()
			_, _ = io.ReadAll(client)
			if took := time.Since(before); took > most+time.Second {
				t.Errorf("%q kept the connection for %v", beginning, took)
			}
			if strings.HasPrefix(beginning, "POST") && <-read == nil {
				t.Error("the body was read")
			}
			_ = end()
		})
	}
}

func TestServeSaysWhyItEnded(t *testing.T) {
	t.Parallel()
	listener, err := Listen(t.Context(), nil, Listening{Address: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := Serve(t.Context(), listener, whoami, nil); err == nil {
		t.Error("Serve ended by itself, and said nothing")
	}
}

// Headers that do not end are cut off.
func TestLargeHeaders(t *testing.T) {
	t.Parallel()
	listener, err := Listen(t.Context(), Local(User{Role: Viewer}), Listening{Address: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	served(t, listener, whoami)
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
	request.Header.Set("X-Forwarded-Groups", strings.Repeat("x", 32<<10))
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", response.StatusCode)
	}
}

// certificate writes a certificate and its key, and returns it for clients.
func certificate(t *testing.T, certFile, keyFile string, number int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "console"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// A console with TLS speaks HTTP/2, and takes a renewed certificate without a restart.
func TestTLS(t *testing.T) {
	t.Parallel()
	folder, c := t.TempDir(), newClock()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	first := certificate(t, certFile, keyFile, 1)
	config, err := tlsFiles(certFile, keyFile, nil, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(t.Context(), nil, Listening{Address: ":0", TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	served(t, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	fetch := func(trusted *x509.Certificate) string {
		t.Helper()
		pool := x509.NewCertPool()
		pool.AddCert(trusted)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	if got := fetch(first); got != "HTTP/2.0" {
		t.Errorf("it speaks %q", got)
	}
	writeFile(t, certFile, "half of a certificate")
	c.pass(lookEvery)
	fetch(first)
	second := certificate(t, certFile, keyFile, 2)
	c.pass(lookEvery)
	fetch(second)
	old := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}
	if _, err := tls.Dial("tcp", listener.Addr().String(), old); err == nil {
		t.Error("it speaks TLS 1.1")
	}
}

func TestTLSFilesOutOfOrder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	certificate(t, file("a.crt"), file("a.key"), 1)
	certificate(t, file("b.crt"), file("b.key"), 2)
	for want, files := range map[string][2]string{
		"give both":        {file("a.crt"), ""},
		"both --tls-cert":  {"", file("a.key")},
		"does not match":   {file("a.crt"), file("b.key")},
		"failed to find":   {file("a.key"), file("a.key")},
		"no such file":     {file("none"), file("a.key")},
		"no such file or ": {file("a.crt"), file("none")},
	} {
		if _, err := TLSFiles(files[0], files[1], nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", files, err, want)
		}
	}
	if err := os.Chmod(file("a.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := TLSFiles(file("a.crt"), file("a.key"), nil); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("everybody can read the key: %v", err)
	}
	if err := os.Chmod(file("a.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file("a.crt"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := TLSFiles(file("a.crt"), file("a.key"), nil); err != nil {
		t.Errorf("a certificate is for everybody, and a key for a group: %v", err)
	}
}
