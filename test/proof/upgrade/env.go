package upgrade

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

//go:embed sql/witness.sql
var witnesses string

// registry is the file of contracts, as a user writes it: those of package torture.
const registry = `contracts:
  - type: thing_changed
    aggregate: thing
    topic: %[1]s.changed
    schema: {type: object, required: [version, by]}
  - type: thing_noted
    aggregate: thing
    topic: %[1]s.noted
`

// The parts that roles of the run have, by role. A publisher is relay and janitor, as deploy.md says.
var parts = map[string][]string{"producer": {"producer"}, "relay": {"relay", "janitor"}, "consumer": nil}

// env is an outbox and an inbox in one schema that is migrated during the run, with roles and topics of its own.
type env struct {
	plan    Plan
	run     string // the schema, and the beginning of all other names
	torture *torture.Env
	nats    *nats.Conn
	js      jetstream.JetStream
	// granted: the roles have their parts. Without, all connect as the owner.
	granted  bool
	registry string
}

// newEnv makes it at the old version.
func newEnv(ctx context.Context, plan Plan) (_ *env, err error) {
	e := &env{plan: plan, run: torture.NewRun(), registry: filepath.Join(plan.Folder, "registry.yaml")}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if err := os.WriteFile(e.registry, fmt.Appendf(nil, registry, e.run), 0o600); err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	if err := e.installOld(ctx); err != nil {
		return nil, err
	}
	if e.torture, err = torture.OpenMigrated(ctx, e.run, plan.Postgres, plan.NATS); err != nil {
		return nil, err
	}
	witness := strings.ReplaceAll(e.torture.SQL(witnesses), "{things}", strconv.Itoa(plan.Things))
	if _, err := e.torture.Pool.Exec(ctx, witness, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("upgrade: install the witnesses: %w", err)
	}
	if e.nats, err = nats.Connect(plan.NATS, nats.Timeout(eventually.Patience)); err == nil {
		if e.js, err = jetstream.New(e.nats); err == nil {
			_, err = e.js.CreateStream(ctx, jetstream.StreamConfig{
				Name: e.deadStream(), Subjects: []string{e.deadLetters()}, Storage: jetstream.MemoryStorage,
			})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("upgrade: the stream of dead letters: %w", err)
	}
	return e, nil
}

func (e *env) deadStream() string  { return e.run + "_dead" }
func (e *env) deadLetters() string { return "dead." + e.run }

// installOld installs the old schema: with the old programs, or, where its migrations have been changed since, with the
// steps of the new ones that it had.
func (e *env) installOld(ctx context.Context) error {
	for role := range parts {
		if err := e.do(ctx, "CREATE ROLE "+e.role(role)+" LOGIN"); err != nil {
			return err
		}
	}
	for _, set := range []struct {
		migrations Migrations
		flags      []string
	}{{e.plan.Outbox, nil}, {e.plan.Inbox, []string{"--inbox"}}} {
		args := append([]string{"migrate", "up"}, set.flags...)
		operator := e.plan.OldPrograms.Operator
		if !set.migrations.Kept() || e.plan.Start != 0 {
			operator = e.plan.NewPrograms.Operator
			args = append(args, "--target", strconv.Itoa(e.plan.start(set.migrations)))
		}
		if _, err := e.operate(ctx, operator, args...); err != nil {
			return err
		}
	}
	// The rights come with the last of the migrations.
	if e.granted = e.plan.Outbox.Kept() && e.plan.Inbox.Kept() && e.plan.Start == 0; !e.granted {
		return nil
	}
	return e.grant(ctx, e.plan.OldPrograms.Operator)
}

// grant gives the roles their parts, as people do after every migration.
func (e *env) grant(ctx context.Context, operator string) error {
	for role, list := range parts {
		for _, part := range list {
			if _, err := e.operate(ctx, operator, "grant", part, e.role(role)); err != nil {
				return err
			}
		}
	}
	_, err := e.operate(ctx, operator, "grant", "--inbox", "consumer", e.role("consumer"))
	e.granted = err == nil
	return err
}

// migrate brings outbox and inbox to the newest version with the new programs, and grants again.
func (e *env) migrate(ctx context.Context) error {
	// People would run it again where live traffic holds a lock for long, as it may on a slow machine.
	for _, flags := range [][]string{nil, {"--inbox"}} {
		args := append([]string{"migrate", "up", "--lock-timeout", "1m"}, flags...)
		if _, err := e.operate(ctx, e.plan.NewPrograms.Operator, args...); err != nil {
			return err
		}
	}
	if err := e.grant(ctx, e.plan.NewPrograms.Operator); err != nil || e.plan.Fault == "" {
		return err
	}
	if _, err := e.torture.Pool.Exec(ctx, e.torture.SQL(e.plan.Fault), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("upgrade: plant a fault: %w", err)
	}
	return nil
}

// operate runs outboxctl as the owner.
func (e *env) operate(ctx context.Context, operator string, args ...string) (string, error) {
	return operate(ctx, operator, e.plan.Postgres, e.run, args...)
}

func operate(ctx context.Context, operator, address, schema string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, eventually.Patience)
	defer cancel()
	run := exec.CommandContext(ctx, operator, append(args, "--schema", schema)...)
	run.Env = []string{"POSTHASTE_DATABASE_URL=" + address, "HOME=" + os.TempDir()}
	said, err := run.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("upgrade: %s %s: %w: %s", operator, strings.Join(args, " "), err, said)
	}
	return string(said), nil
}

func (e *env) role(part string) string { return e.run + "_" + part }

// address is the database's for a process of a part, whose name every connection bears.
func (e *env) address(part, name string) (string, error) {
	at, err := url.Parse(e.plan.Postgres)
	if err != nil {
		return "", fmt.Errorf("upgrade: the database's address: %w", err)
	}
	if e.granted { // the servers of tests trust everyone on loopback
		at.User = url.User(e.role(part))
	}
	query := at.Query()
	query.Set("application_name", name)
	at.RawQuery = query.Encode()
	return at.String(), nil
}

// do runs a statement in the database, before and after there is a pool.
func (e *env) do(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, e.plan.Postgres)
	if err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("upgrade: %s: %w", statement, err)
	}
	return nil
}

// count counts rows.
func (e *env) count(ctx context.Context, query string, args ...any) (n int, err error) {
	if err := e.torture.Pool.QueryRow(ctx, e.torture.SQL(query), args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("upgrade: %w", err)
	}
	return n, nil
}

// close removes everything, also after an interrupt.
func (e *env) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	defer cancel()
	var problems []error
	if e.nats != nil {
		if e.js != nil {
			if err := e.js.DeleteStream(ctx, e.deadStream()); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
				problems = append(problems, fmt.Errorf("upgrade: %w", err))
			}
		}
		e.nats.Close()
	}
	if e.torture != nil {
		problems = append(problems, e.torture.Close())
	} else {
		problems = append(problems, e.do(ctx, "DROP SCHEMA IF EXISTS "+e.run+" CASCADE"))
	}
	for role := range parts {
		problems = append(problems, e.do(ctx, "DROP ROLE IF EXISTS "+e.role(role)))
	}
	return errors.Join(problems...)
}
