package quickstart

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// patience only ends a hang: a busy machine compiles for long.
const patience = 10 * time.Minute

// ours is the path of the modules.
const ours = "github.com/posthaste-dev/posthaste"

// Plan says where the repository is and where to work.
type Plan struct {
	Root, Folder string
	Short        bool
	Log          io.Writer
	// Proxy is the folder of a module proxy that has our modules. Defaults to one of the files as they are now.
	Proxy string
	// Version is the version of our modules that must come from there. Defaults to whatever is the latest.
	Version string
}

// env is what one run has made on the servers.
type env struct {
	Plan
	admin  *pgx.Conn
	server *url.URL
	unique string
	in     Terminal
	report *Report
}

// Prove does all of it.
func Prove(ctx context.Context, plan Plan) (_ *Report, err error) {
	text, err := os.ReadFile(filepath.Join(plan.Root, "README.md"))
	if err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	page, err := ReadPage(string(text), "Quick start")
	if err != nil {
		return nil, err
	}
	e := &env{Plan: plan, unique: "quickstart_" + strings.ToLower(rand.Text()[:10]), report: &Report{Short: plan.Short}}
	if e.server, err = url.Parse(services.Postgres18()); err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	if e.admin, err = pgx.Connect(ctx, e.server.String()); err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	if err := e.walk(ctx, page); err != nil {
		return nil, err
	}
	// The pages wait more than they work, above all for the lease of a relay that they kill.
	var pages errgroup.Group
	pages.Go(func() error { return e.runPages(ctx) })
	err = e.leaveOut(ctx)
	return e.report, errors.Join(err, pages.Wait())
}

// databases are those that a run makes: for README, for the module, one that stays empty, and one for each page's
// blocks.
var databases = []string{"_readme", "_module", "_empty", "_page0", "_page1", "_page2"}

// open writes the module proxy and makes the databases, the role and the empty folder.
func (e *env) open(ctx context.Context) error {
	empty, bin := filepath.Join(e.Folder, "empty"), filepath.Join(e.Folder, "bin")
	for _, folder := range []string{empty, bin} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
	}
	proxy, err := e.proxy(ctx)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, name := range []string{"GOMODCACHE", "GOPROXY", "GOCACHE"} {
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return fmt.Errorf("quickstart: go env %s: %w", name, err)
		}
		settings[name] = strings.TrimSpace(string(value))
	}
	// A cache of its own: today's copy of our modules must not stay in the user's. The real one answers before the
	// network. What was compiled before without the names of folders in it is not compiled again.
	e.in = Terminal{Folder: empty, Log: e.Log, Environ: environ(
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOBIN="+bin, "GOCACHE="+settings["GOCACHE"],
		"GOPROXY=file://"+proxy+",file://"+settings["GOMODCACHE"]+"/cache/download,"+settings["GOPROXY"],
		"GOMODCACHE="+filepath.Join(e.Folder, "modules"), "GONOSUMDB="+ours+","+ours+"/*", "GOWORK=off",
		"GOFLAGS=-modcacherw -trimpath",
		"PGHOST="+e.server.Hostname(), "PGPORT="+e.server.Port(), "PGUSER="+e.server.User.Username(),
		"PGDATABASE="+e.unique+databases[0],
	)}
	for _, database := range databases {
		if _, err := e.admin.Exec(ctx, "CREATE DATABASE "+e.unique+database); err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
	}
	if _, err := e.admin.Exec(ctx, "CREATE ROLE "+e.unique+" LOGIN"); err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	return nil
}

// proxy is the folder of the module proxy: the one that was given, or one that it writes.
func (e *env) proxy(ctx context.Context) (string, error) {
	if e.Proxy != "" {
		proxy, err := filepath.Abs(e.Proxy)
		if err != nil {
			return "", fmt.Errorf("quickstart: %w", err)
		}
		return proxy, nil
	}
	proxy := filepath.Join(e.Folder, "proxy")
	write := exec.CommandContext(ctx, filepath.Join(e.Root, "scripts", "module-proxy"), proxy, "worktree")
	write.Stdout, write.Stderr = e.Log, e.Log
	if err := write.Run(); err != nil {
		return "", fmt.Errorf("quickstart: scripts/module-proxy: %w", err)
	}
	return proxy, nil
}

func (e *env) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, database := range databases {
		_, dropping := e.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+e.unique+database+" WITH (FORCE)")
		err = errors.Join(err, dropping)
	}
	_, dropping := e.admin.Exec(ctx, "DROP ROLE IF EXISTS "+e.unique)
	err = errors.Join(err, dropping, e.admin.Close(ctx))
	js, closing, connecting := jetStream()
	if connecting != nil {
		return errors.Join(err, connecting)
	}
	defer closing()
	if deleting := js.DeleteStream(ctx, e.unique); !errors.Is(deleting, jetstream.ErrStreamNotFound) {
		err = errors.Join(err, deleting)
	}
	return err
}

// walk does README, and then the module.
func (e *env) walk(ctx context.Context, page *Page) (err error) {
	begun := time.Now()
	if shown, err := e.in.Run(ctx, page.Install); err != nil {
		return fmt.Errorf("quickstart: %s: %w\n%s", page.Install, err, shown)
	}
	e.report.InstallSeconds = time.Since(begun).Seconds()
	if err := e.isVersion(ctx); err != nil {
		return err
	}
	if e.report.Readme, err = page.Walk(ctx, e.in, patience); err != nil {
		return err
	}
	e.report.Module, err = WalkModule(ctx, e.in.With("DATABASE_URL="+e.url(databases[1], "")), patience)
	return err
}

// isVersion holds the program that was installed to the version that was asked for.
func (e *env) isVersion(ctx context.Context) error {
	if e.Version == "" {
		return nil
	}
	shown, err := e.in.Run(ctx, `go version -m "$GOBIN/outboxctl"`)
	if err != nil {
		return fmt.Errorf("quickstart: go version: %w", err)
	}
	for line := range strings.Lines(shown) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "mod" && words[2] != e.Version {
			return fmt.Errorf("quickstart: %s of %s was installed, and not %s", words[2], words[1], e.Version)
		}
	}
	return nil
}

// url is that of one of the databases, for a user or for the superuser.
func (e *env) url(database, user string) string {
	address := *e.server
	address.Path = "/" + e.unique + database
	if user != "" {
		address.User = url.User(user)
	}
	return address.String()
}

// leaveOut leaves each thing out.
func (e *env) leaveOut(ctx context.Context) error {
	const emit = "outboxctl emit order_created --aggregate order/1"
	owner := e.in.With("DATABASE_URL=" + e.url(databases[2], ""))
	role := e.in.With("DATABASE_URL=" + e.url(databases[2], e.unique))
	fixed := func(fix string, then Terminal) func(context.Context) (Terminal, error) {
		return func(ctx context.Context) (Terminal, error) {
			_, err := owner.Run(ctx, fix)
			return then, err
		}
	}
	cases := []Missing{
		{
			Name: "database", Command: emit, In: e.in.With("PGPORT=1"),
			Says: []string{
				"no PostgreSQL answers", "port 1: ", "docker run", "export DATABASE_URL=postgres://",
			},
		},
		{
			Name: "table", Command: emit, In: owner, Says: []string{"run 'outboxctl migrate up'"},
			Fix: fixed("outboxctl migrate up", owner),
		},
		{
			Name: "grant", Command: emit, In: role, Says: []string{"'outboxctl grant producer ROLE'"},
			Fix: fixed("outboxctl grant producer "+e.unique, role),
		},
		e.withoutStream(),
	}
	for _, c := range cases {
		found, err := c.Try(ctx)
		if err != nil {
			return err
		}
		e.report.Missing = append(e.report.Missing, found)
	}
	return e.withoutPassword(ctx)
}

// jetStream connects to NATS.
func jetStream() (_ jetstream.JetStream, closing func(), err error) {
	conn, err := nats.Connect(services.NATS(), nats.Timeout(patience))
	if err != nil {
		return nil, nil, fmt.Errorf("quickstart: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("quickstart: %w", err)
	}
	return js, conn.Close, nil
}

// withoutStream listens to a subject that no stream has.
func (e *env) withoutStream() Missing {
	in := e.in.With("POSTHASTE_NATS_URL=" + services.NATS())
	return Missing{
		Name: "stream", Command: "outboxctl listen " + e.unique + " --since 1h --count 1", In: in,
		Says: []string{"no stream of NATS has the subject " + e.unique, "nats stream add events --subjects " + e.unique},
		Fix: func(ctx context.Context) (Terminal, error) {
			js, closing, err := jetStream()
			if err != nil {
				return in, err
			}
			defer closing()
			if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
				Name: e.unique, Subjects: []string{e.unique}, Storage: jetstream.MemoryStorage,
			}); err != nil {
				return in, fmt.Errorf("quickstart: %w", err)
			}
			_, err = js.Publish(ctx, e.unique, []byte("{}"))
			return in, err
		},
	}
}

// withoutPassword needs a server that asks for one.
func (e *env) withoutPassword(ctx context.Context) (err error) {
	strict, err := cluster.New(ctx, cluster.Config{Major: 18})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, strict.Close()) }()
	conn, err := pgx.Connect(ctx, strict.URL())
	if err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var rules string
	if err := conn.QueryRow(ctx, "SHOW hba_file").Scan(&rules); err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	for _, statement := range []string{
		"CREATE ROLE shop LOGIN PASSWORD 's3cr3t'",
		"COPY (VALUES ('host all postgres 127.0.0.1/32 trust'), ('host all all 127.0.0.1/32 scram-sha-256')) TO '" +
			strings.ReplaceAll(rules, "'", "''") + "'",
		"SELECT pg_reload_conf()",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
	}
	address, err := url.Parse(strict.URL())
	if err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	address.User = url.User("shop")
	in := e.in.With("DATABASE_URL=" + address.String())
	found, err := Missing{
		Name: "password", Command: "outboxctl migrate status", In: in,
		Says: []string{"no password is given: set POSTHASTE_DATABASE_PASSWORD", "POSTHASTE_DATABASE_PASSWORD_FILE"},
		Fix: func(context.Context) (Terminal, error) {
			return in.With("POSTHASTE_DATABASE_PASSWORD=s3cr3t"), nil
		},
	}.Try(ctx)
	if err != nil {
		return err
	}
	e.report.Missing = append(e.report.Missing, found)
	return nil
}
