package daemon

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// guarded is a PostgreSQL that does not take everybody, with a role for the publisher.
type guarded struct {
	*cluster.Cluster
	t *testing.T
}

const role = "shop_relay"

// newGuarded makes one. The rule is what pg_hba.conf says of the role.
func newGuarded(t *testing.T, rule string) *guarded {
	t.Helper()
	c, err := cluster.New(t.Context(), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{c, t}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", c.URL()),
		schema.Options{Schema: "public"}); err != nil {
		t.Fatal(err)
	}
	g.exec("CREATE ROLE " + role + " LOGIN")
	g.exec(fmt.Sprintf("SELECT outbox_grant('relay', '%s'), outbox_grant('janitor', '%[1]s')", role))
	g.file("pg_hba.conf", "host all postgres 127.0.0.1/32 trust\n"+rule+"\n")
	g.reload()
	return g
}

func (g *guarded) exec(statement string, args ...any) {
	g.t.Helper()
	if err := g.Exec(g.t.Context(), statement, args...); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guarded) count(query string, args ...any) int {
	g.t.Helper()
	text, err := g.Text(g.t.Context(), query, args...)
	if err != nil {
		g.t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// file has the server write a file of its own: it belongs to another user than this test.
func (g *guarded) file(name, text string) {
	g.t.Helper()
	folder, err := g.Text(g.t.Context(), "current_setting('data_directory')")
	if err != nil {
		g.t.Fatal(err)
	}
	g.exec(fmt.Sprintf("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077; cat >%s'",
		strings.TrimSpace(text), filepath.Join(folder, name)))
}

func (g *guarded) reload() { g.exec("SELECT pg_reload_conf()") }

// cut ends the connections of the publisher, and tells how many there were.
func (g *guarded) cut() int {
	g.t.Helper()
	return g.count("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1", role)
}

// flow writes one event after the other whenever it is asked whether they have arrived.
type flow struct {
	*guarded
	stream  jetstream.Stream
	written int
}

// goesOn writes events until some that were written from now on have arrived.
func (f *flow) goesOn(p *publisher) {
	f.t.Helper()
	began, since := time.Now(), f.written
	p.until("events flow", func() bool {
		f.write()
		return messages(f.t, f.stream) > since
	})
	f.t.Logf("events flow after %s", time.Since(began).Round(time.Millisecond))
}

func (f *flow) write() {
	f.t.Helper()
	f.exec(strings.ReplaceAll(insertOrders, "{schema}", "public"), fmt.Sprintf("a-%d-", f.written), 1)
	f.written++
}

// ends looks at the end: everything has arrived, once, and nothing was blamed on an event.
func (f *flow) ends(p *publisher) {
	f.t.Helper()
	p.until("all events have arrived", func() bool { return messages(f.t, f.stream) >= f.written })
	if got := messages(f.t, f.stream); got != f.written {
		f.t.Errorf("%d events were written, %d have arrived", f.written, got)
	}
	if got := f.count("SELECT count(*) FROM outbox_events WHERE attempt_count > 0"); got != 0 {
		f.t.Errorf("%d events were charged", got)
	}
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		f.t.Errorf("exit code %d", code)
	}
}

// The password is changed and the connections are cut. When the file has the new one, events flow again.
func TestThePasswordIsRotated(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(g *guarded, folder string) (environ []string, change func(password string)){
		"in the URL": func(g *guarded, folder string) ([]string, func(string)) {
			file := filepath.Join(folder, "url")
			return []string{"POSTHASTE_DATABASE_URL_FILE=" + file}, func(password string) {
				put(g.t, file, fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable\n", role, password, g.Port()))
			}
		},
		"beside the URL": func(g *guarded, folder string) ([]string, func(string)) {
			file, url := filepath.Join(folder, "password"),
				fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", role, g.Port())
			return []string{
					"POSTHASTE_DATABASE_URL=" + url, "POSTHASTE_DATABASE_LISTEN_URL=" + url + "&application_name=bell",
					"POSTHASTE_DATABASE_PASSWORD_FILE=" + file,
				},
				func(password string) { put(g.t, file, password) }
		},
		"in a passfile": func(g *guarded, folder string) ([]string, func(string)) {
			file := filepath.Join(folder, "pgpass")
			url := fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable&passfile=%s", role, g.Port(), file)
			return []string{"POSTHASTE_DATABASE_URL=" + url}, func(password string) { put(g.t, file, "*:*:*:*:"+password+"\n") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, top := newGuarded(t, "host all "+role+" 127.0.0.1/32 scram-sha-256"), newTopic(t)
			environ, change := way(g, t.TempDir())
			password := func(name string) string { return canary + "-" + name }
			set := func(name string) { g.exec(fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", role, password(name))) }
			set("first")
			change(password("first"))
			f := &flow{guarded: g, stream: top.stream(t, services.NATS())}
			p := start(t, settings{
				schema: "public", nats: services.NATS(), registry: top.registry, more: environ,
				args: []string{"--retention-every=1s"},
			})
			f.goesOn(p)
			p.until("its pools are connected, and the one that hears the doorbell", func() bool {
				return g.count("SELECT count(*) FROM pg_stat_activity WHERE usename = $1", role) >= 3
			})
			set("second")
			if cut := g.cut(); cut < 3 {
				t.Errorf("%d connections were cut", cut)
			}
			f.write()
			p.untilReady(http.StatusServiceUnavailable, "[-] database: ")
			change(password("second"))
			f.goesOn(p)
			p.untilReady(http.StatusOK, "[+] database: ")
			p.until("it hears the doorbell", func() bool {
				return g.count("SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND query LIKE 'LISTEN%'", role) == 1
			})
			f.ends(p)
		})
	}
}

// The server has a certificate of another authority, and wants one of it from its clients.
func TestTheCertificatesOfTheDatabaseAreRotated(t *testing.T) {
	t.Parallel()
	g, top, folder := newGuarded(t, "hostssl all "+role+" 127.0.0.1/32 cert"), newTopic(t), t.TempDir()
	reign := func(a *authority) {
		certificate, key := a.issue("database")
		g.file("server.crt", certificate)
		g.file("server.key", key)
		g.file("root.crt", a.text)
		g.exec("ALTER SYSTEM SET ssl_ca_file = 'root.crt'")
		g.exec("ALTER SYSTEM SET ssl = on")
		g.reload()
	}
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	reign(first)
	first.hand(folder, role)
	url := fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=verify-full&sslrootcert=%s&sslcert=%s&sslkey=%s",
		role, g.Port(), filepath.Join(folder, "ca.pem"), filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"))
	f := &flow{guarded: g, stream: top.stream(t, services.NATS())}
	p := start(t, settings{
		schema: "public", nats: services.NATS(), registry: top.registry, more: []string{"POSTHASTE_DATABASE_URL=" + url},
	})
	f.goesOn(p)
	reign(second)
	p.until("the server has the other certificate", func() bool {
		g.cut()
		status, _ := p.probe("/readyz")
		return status == http.StatusServiceUnavailable
	})
	f.write()
	second.hand(folder, role)
	f.goesOn(p)
	p.untilReady(http.StatusOK, "[+] database: ")
	f.ends(p)
}

// The same for NATS: first another password, then another authority.
func TestTheCredentialsOfNATSAreRotated(t *testing.T) {
	t.Parallel()
	g, top, broker, folder := newGuarded(t, "host all "+role+" 127.0.0.1/32 trust"), newTopic(t), newNATS(t), t.TempDir()
	url := filepath.Join(folder, "url")
	reign := func(a *authority, password string) {
		certificate, key := a.issue("nats")
		for file, text := range map[string]string{"server.crt": certificate, "server.key": key, "root.crt": a.text} {
			put(t, filepath.Join(broker.folder, file), text)
		}
		a.hand(broker.folder, "test")
		broker.configuration = fmt.Sprintf("tls {cert_file: %q, key_file: %q, ca_file: %q, verify: true}\nauthorization "+
			"{user: relay, password: %q}\n",
			filepath.Join(broker.folder, "server.crt"), filepath.Join(broker.folder, "server.key"),
			filepath.Join(broker.folder, "root.crt"), password)
		broker.login = []nats.Option{
			nats.UserInfo("relay", password), nats.RootCAs(filepath.Join(broker.folder, "ca.pem")),
			nats.ClientCert(filepath.Join(broker.folder, "cert.pem"), filepath.Join(broker.folder, "key.pem")),
		}
		broker.kill()
		broker.start()
	}
	hand := func(password string) { put(t, url, "tls://relay:"+password+"@"+broker.Address) }
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	reign(first, canary+"-first")
	first.hand(folder, "relay")
	hand(canary + "-first")
	f := &flow{guarded: g, stream: top.stream(t, broker.url(), broker.login...)}
	p := start(t, settings{
		database: fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", role, g.Port()), schema: "public",
		registry: top.registry,
		more: []string{
			"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL_FILE=" + url,
			"POSTHASTE_NATS_CA_FILE=" + filepath.Join(folder, "ca.pem"),
			"POSTHASTE_NATS_CERT_FILE=" + filepath.Join(folder, "cert.pem"),
			"POSTHASTE_NATS_KEY_FILE=" + filepath.Join(folder, "key.pem"),
		},
	})
	f.goesOn(p)
	for _, step := range []struct {
		authority *authority
		password  string
		rotate    func()
	}{
		{first, "second", func() { hand(canary + "-second") }},
		{second, "second", func() { second.hand(folder, "relay") }},
	} {
		reign(step.authority, canary+"-"+step.password)
		f.write()
		p.untilReady(http.StatusServiceUnavailable, "[-] broker: nats: not connected")
		step.rotate()
		stream, err := newJetStream(t, broker).Stream(t.Context(), top.name)
		if err != nil {
			t.Fatal(err)
		}
		f.stream = stream
		f.goesOn(p)
		p.untilReady(http.StatusOK, "[+] broker: nats")
	}
	f.ends(p)
}

func newJetStream(t *testing.T, broker *natsServer) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(broker.url(), append([]nats.Option{nats.Timeout(eventually.Patience)}, broker.login...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// A hang-up ends nothing. The log says what has changed, what of it needs a restart, and whether the database takes
// the credentials that the files hold now.
func TestSIGHUP(t *testing.T) {
	t.Parallel()
	g, top := newGuarded(t, "host all "+role+" 127.0.0.1/32 scram-sha-256"), newTopic(t)
	file := filepath.Join(t.TempDir(), "url")
	change := func(password string) {
		put(t, file, fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable\n", role, password, g.Port()))
	}
	g.exec(fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", role, canary))
	change(canary)
	p := start(t, settings{
		schema: "public", nats: services.NATS(), registry: top.registry,
		more: []string{"POSTHASTE_DATABASE_URL_FILE=" + file},
	})
	p.untilReady(http.StatusOK, "64 lanes")
	said := func(words ...string) {
		t.Helper()
		before := len(p.Said())
		p.signal(syscall.SIGHUP)
		p.until(fmt.Sprintf("it has said %q", words), func() bool {
			now := p.Said()[before:]
			for _, word := range words {
				if !strings.Contains(now, word) {
					return false
				}
			}
			return true
		})
	}
	said(`"in_use_from_the_next_connect":null,"needs_a_restart":null`, "the database takes the credentials")
	change(canary + "-wrong")
	text, err := os.ReadFile(top.registry)
	if err != nil {
		t.Fatal(err)
	}
	put(t, top.registry, string(text)+"# changed\n")
	said(`"in_use_from_the_next_connect":["database.url"],"needs_a_restart":["registry.file (its contents)"]`,
		"does not take the credentials", "28P01")
	put(t, top.registry, "contracts: [oh")
	said("a restart would refuse")
	p.untilReady(http.StatusOK, "64 lanes")
}
