package leaks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

// output runs a program to its end and returns all that it printed.
func (r *run) output(ctx context.Context, program string, environment []string,
	args ...string,
) (text string, code int) {
	ctx, cancel := context.WithTimeout(ctx, eventually.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append([]string{"HOME=" + r.folder, "USER=proof", "PATH=" + os.Getenv("PATH")},
		append(environment, r.plan.Environment...)...)
	said, err := command.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		return err.Error(), -1
	}
	return string(said), command.ProcessState.ExitCode()
}

// command runs a program, which must end by itself, and has its output searched.
func (r *run) command(ctx context.Context, program string, environment []string, args ...string) (code int) {
	text, code := r.output(ctx, program, environment, args...)
	if code < 0 {
		r.report.Broken = append(r.report.Broken, fmt.Sprintf("%s %v did not end by itself within %s", filepath.Base(program),
			args, eventually.Patience))
	}
	r.report.commands++
	r.ledger.Look(Command, fmt.Sprintf("%d: %s %s", r.report.commands, filepath.Base(program), args), []byte(text))
	return code
}

// with replaces settings.
func with(settings []string, replaced ...string) []string {
	var list []string
	for _, line := range settings {
		name, _, _ := strings.Cut(line, "=")
		keep := true
		for _, other := range replaced {
			if with, _, _ := strings.Cut(other, "="); with == name || with == name+"_FILE" {
				keep = false
			}
		}
		if keep {
			list = append(list, line)
		}
	}
	for _, line := range replaced {
		if !strings.HasSuffix(line, "=") { // to be left out
			list = append(list, line)
		}
	}
	return list
}

// file writes a file for settings that name one.
func (r *run) file(name, text string) (string, error) {
	path := filepath.Join(r.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("leaks: %w", err)
	}
	return path, nil
}

// commands runs everything that prints, with settings that hold secrets and with such that are wrong.
func (r *run) commands(ctx context.Context) error {
	b, wrong := r.birds, r.birds.wrong.Text
	good := r.settings("json")
	secretFile, err := r.file("database-url", r.databaseURL(relayRole, b.databasePassword.Text)+"\n")
	if err != nil {
		return err
	}
	brokenFile, err := r.file("broken-url", "postgres://relay:"+wrong+"@[bad\n"+wrong)
	if err != nil {
		return err
	}
	garbage, err := r.file("garbage.json", `{"type":"service_account","private_key":"`+wrong+`",`)
	if err != nil {
		return err
	}
	settingsFile, err := r.file("settings.yaml",
		"database:\n  url: postgres://relay:"+wrong+"@127.0.0.1/x\nnats:\n  url: nats://u:"+wrong+"@127.0.0.1\n  pasword: "+
			wrong+"\n")
	if err != nil {
		return err
	}
	binary := r.plan.Binary
	for _, settings := range [][]string{
		good, with(good, "POSTHASTE_DATABASE_URL_FILE="+secretFile),
		with(good, "POSTHASTE_NATS_URL="+"nats://"+b.natsToken.Text+"@"+r.nats.Address),
		with(good, "POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=proof", "POSTHASTE_PUBSUB_CREDENTIALS_FILE="+garbage),
	} {
		r.command(ctx, binary, settings, "config", "show")
	}
	for _, args := range [][]string{
		{"version"}, {"--help"}, {"config", "docs"}, {"health"}, {"health", "--live"}, {"nonsense", wrong},
	} {
		r.command(ctx, binary, good, args...)
	}
	// All of these are refused, at once.
	for _, settings := range [][]string{
		with(good, "POSTHASTE_DATABASE_URL=postgres://relay:"+wrong+"@[bad"),
		with(good, "POSTHASTE_DATABASE_URL=postgres://relay:"+wrong+"@db.example.com/shop"),
		with(good, "POSTHASTE_DATABASE_URL=host=127.0.0.1 port=x password="+wrong),
		with(good, "POSTHASTE_DATABASE_URL=postgres://relay:%zz"+wrong+"@127.0.0.1/x"),
		with(good, "POSTHASTE_DATABASE_URL=postgres://127.0.0.1/x?sslmode=verify-full&sslrootcert=/nowhere&password="+wrong),
		with(good, "POSTHASTE_DATABASE_LISTEN_URL=postgres://relay:"+wrong+"@elsewhere.example.com/x"),
		with(good, "POSTHASTE_DATABASE_URL_FILE="+brokenFile),
		with(good, "POSTHASTE_NATS_URL=nats://u:"+wrong+"@nats.example.com:4222"),
		with(good, "POSTHASTE_NATS_URL=nats://u:"+wrong+"@bad host:x"),
		with(good, "POSTHASTE_NATS_URL=http://u:"+wrong+"@127.0.0.1"),
		with(good, "POSTHASTE_NATS_CREDENTIALS_FILE=/nowhere/"),
		with(good, "POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=proof", "POSTHASTE_PUBSUB_CREDENTIALS_FILE="+garbage),
		with(good, "POSTHASTE_DATABASE_PASWORD="+wrong),
	} {
		if code := r.command(ctx, binary, settings, "run"); code == 0 {
			r.report.Broken = append(r.report.Broken, "wrong settings were accepted")
		}
	}
	for _, args := range [][]string{
		{"run", "--database-url=" + wrong},
		{"run", "--nats-url", "nats://u:" + wrong + "@x"},
		{"config", "show", "--config=" + settingsFile},
		{"run", "--config=" + settingsFile},
	} {
		r.command(ctx, binary, good, args...)
	}
	r.outboxctl(ctx)
	return nil
}

// outboxctl asks the operator's tool, with secrets that work, do not, and cannot be read.
func (r *run) outboxctl(ctx context.Context) {
	b, wrong := r.birds, r.birds.wrong.Text
	for _, address := range []string{
		r.databaseURL(relayRole, b.databasePassword.Text), r.databaseURL(relayRole, wrong),
		"postgres://relay:" + wrong + "@127.0.0.1:1/x?connect_timeout=2",
		"postgres://relay:" + wrong + "@[bad", "host=127.0.0.1 port=x password=" + wrong,
		"postgres://relay:%zz" + wrong + "@127.0.0.1/x",
	} {
		for _, args := range [][]string{
			{"migrate", "status"},
			{"migrate", "up"},
			{"grant", "relay", relayRole},
			{"dead", "redrive", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", "--reason", "x"},
		} {
			r.command(ctx, r.plan.Outboxctl, []string{"POSTHASTE_DATABASE_URL=" + address}, args...)
		}
		r.command(ctx, r.plan.Outboxctl, nil, "migrate", "status", "--database-url", address)
	}
	for _, args := range [][]string{{"--help"}, {"migrate", "sql"}, {"nonsense", wrong}} {
		r.command(ctx, r.plan.Outboxctl, []string{"POSTHASTE_DATABASE_URL=" + r.database.URL()}, args...)
	}
}

// leastProbes is how often a publisher that cannot work is asked how it is, at least.
const leastProbes = 4

// otherCredentials are publishers whose credentials are of other kinds, or are not accepted.
func (r *run) otherCredentials(ctx context.Context) error {
	b := r.birds
	creds, err := r.file("relay.creds",
		"-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ."+b.natsSeed.Text+
			".x\n------END NATS USER JWT------\n\n"+
			"-----BEGIN USER NKEY SEED-----\nSUA"+strings.ToUpper(b.natsSeed.Text)+"\n------END USER NKEY SEED------\n")
	if err != nil {
		return err
	}
	google, err := r.file("google.json", `{"type":"authorized_user","client_id":"proof","client_secret":"`+
		b.googleKey.Text+`","refresh_token":"`+b.googleKey.Text+`"}`)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx) // most of their time they wait
	const noNATS, noDatabase = "NATS cannot be reached", "the database cannot be used yet"
	words := map[string]string{
		"token": noNATS, "credentials": noNATS, "wrong-nats": noNATS, "wrong-password": noDatabase,
		"nobody-there": noDatabase,
	}
	for name, replaced := range map[string][]string{
		"token":          {"POSTHASTE_NATS_URL=nats://" + b.natsToken.Text + "@" + r.nats.Address},
		"credentials":    {"POSTHASTE_NATS_URL=nats://" + r.nats.Address, "POSTHASTE_NATS_CREDENTIALS_FILE=" + creds},
		"wrong-password": {"POSTHASTE_DATABASE_URL=" + r.databaseURL(relayRole, b.wrong.Text)},
		"wrong-listen":   {"POSTHASTE_DATABASE_LISTEN_URL=" + r.databaseURL(listenRole, b.wrong.Text)},
		"wrong-nats":     {"POSTHASTE_NATS_URL=" + r.natsURL(b.wrong.Text)},
		"nobody-there": {
			"POSTHASTE_DATABASE_URL=postgres://relay:" + b.wrong.Text + "@127.0.0.1:1/x?sslmode=disable",
			"POSTHASTE_NATS_URL=nats://u:" + b.wrong.Text + "@127.0.0.1:1",
		},
		"pubsub-no-server": {
			"POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=proof", "POSTHASTE_PUBSUB_ENDPOINT=127.0.0.1:1",
			"POSTHASTE_PUBSUB_CREDENTIALS_FILE=" + google,
		},
		"pubsub-no-network": {
			"POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=proof", "POSTHASTE_PUBSUB_CREDENTIALS_FILE=" + google,
		},
	} {
		format := []string{"json", "text"}[len(name)%2]
		group.Go(func() error {
			if err := r.tryCredentials(ctx, name, words[name], with(r.settings(format), replaced...)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// tryCredentials lets a publisher try, until its log has these words and it has been asked a few times, and looks at
// what it says.
func (r *run) tryCredentials(ctx context.Context, name, words string, settings []string) error {
	r.sayf("a publisher tries: %s", name)
	if err := r.write(ctx, r.birds.good(0)); err != nil {
		return err
	}
	log := filepath.Join(r.folder, "publisher-"+name+".log")
	p, err := publisher.StartProgram(ctx, r.plan.Binary, log, settings)
	if err != nil { // it ended: that is an answer as well
		r.ledger.Look(Log, filepath.Base(log), []byte(err.Error()))
		return r.logOf(log)
	}
	defer p.Kill()
	err = eventually.Within(ctx, eventually.Patience, "its log has "+words, func() (bool, error) {
		said, err := os.ReadFile(log)
		return !p.Alive() || strings.Contains(string(said), words), err
	})
	if err != nil {
		return err
	}
	for range leastProbes {
		for _, path := range []string{"/readyz?verbose", "/metrics"} {
			status, body := p.Fetch(ctx, http.MethodGet, path)
			r.ledger.Look(HTTP, fmt.Sprintf("%s of %s: %d", path, name, status), []byte(body))
		}
		if err := wait.For(ctx, 300*time.Millisecond); err != nil { // what was found out is told again for a second
			return fmt.Errorf("leaks: %w", err)
		}
	}
	if _, err := p.Stop(eventually.Patience); err != nil {
		return err
	}
	return r.logOf(log)
}
