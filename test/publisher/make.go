package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// Run says where `make run-outbox-publisher` is tried.
type Run struct {
	// Root is the folder of the Makefile, Postgres a server on which a database can be made, NATS that of the services.
	Root, Postgres, NATS string
	// Folder takes the log.
	Folder string
	// Target is what is made. Defaults to run-outbox-publisher.
	Target string
}

// emitted is what a person types into psql: an event of examples/registry.yaml.
const emitted = `SELECT id FROM outbox_emit('order_created', 'vendor_order', 'order-1',
	'{"orderId":"order-1","vendorStoreId":"store-1","lines":[{"lineItemId":"line-1","quantity":2}]}')`

// topic is that event's.
const topic = "pf-domain-events"

// building is how long make may take to build, migrate and start.
const building = 10 * time.Minute

// Make starts the publisher as the README says, inserts an event by psql, and waits until NATS has it.
func Make(ctx context.Context, run Run, say io.Writer) (_ *Made, err error) {
	database, drop, err := Scratch(ctx, run.Postgres, "proof_publisher")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	arrived, closeStream, err := listen(ctx, run.NATS)
	if err != nil {
		return nil, err
	}
	defer closeStream()
	log := filepath.Join(run.Folder, "make.log")
	target := run.Target
	if target == "" {
		target = "run-outbox-publisher"
	}
	_, _ = fmt.Fprintf(say, "proof-publisher: make %s\n", target) // of no consequence
	process, ended, err := startMake(run, target, database, log)
	if err != nil {
		return nil, err
	}
	interrupt := func() { // as Ctrl-C does it: make and all that it started
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(patience): // its log lacks the end, which is found
			_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	defer interrupt()
	if err := untilSaid(ctx, log, "the publisher starts", ended); err != nil {
		return nil, err
	}
	id, err := psql(ctx, database)
	if err != nil {
		return nil, err
	}
	made, began := &Made{}, time.Now()
	select {
	case <-arrived(id):
		made.Delivered = time.Since(began)
	case <-ended:
		made.Problems = append(made.Problems, "make: it ended before the event was delivered")
	case <-time.After(patience):
		made.Problems = append(made.Problems, fmt.Sprintf("make: the event was not delivered within %s", patience))
	}
	_, _ = fmt.Fprintf(say, "proof-publisher: event %s of psql is in NATS after %s\n", id, made.Delivered.Round(time.Millisecond))
	interrupt()
	said, err := os.ReadFile(log)
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	if !strings.Contains(string(said), "the publisher has stopped") {
		made.Problems = append(made.Problems, "make: it did not say that it has stopped: "+string(said[max(0, len(said)-500):]))
	}
	return made, nil
}

// Scratch makes a database that nobody else uses, and whose name begins so.
func Scratch(ctx context.Context, server, prefix string) (url string, drop func() error, err error) {
	name := pgtest.NewName(prefix)
	do := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		return nil
	}
	if err := do(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return "", nil, fmt.Errorf("publisher: %w", err)
	}
	drop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience) // to drop one waits for a checkpoint
		defer cancel()
		return do(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	}
	address := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return "postgres://" + config.User + "@" + address + "/" + name + "?sslmode=disable", drop, nil
}

// listen watches a stream that takes the topic: one that is there, or one of its own. Arrived tells of an event by its id,
// when the stream has it.
func listen(ctx context.Context, address string) (arrived func(id string) <-chan struct{}, end func(), err error) {
	conn, err := nats.Connect(address, nats.Timeout(patience))
	if err != nil {
		return nil, nil, fmt.Errorf("publisher: connect to NATS: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		return nil, nil, fmt.Errorf("publisher: %w", err)
	}
	name, err := js.StreamNameBySubject(ctx, topic)
	mine := errors.Is(err, jetstream.ErrStreamNotFound)
	if mine {
		name = pgtest.NewName("proof_publisher")
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{topic}, Storage: jetstream.MemoryStorage})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("publisher: a stream for %s: %w", topic, err)
	}
	end = func() {
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if mine {
			_ = js.DeleteStream(ctx, name) // in memory, and of no consequence
		}
	}
	consumer, err := js.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{FilterSubjects: []string{topic}, DeliverPolicy: jetstream.DeliverNewPolicy})
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("publisher: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("publisher: %w", err)
	}
	arrived = func(id string) <-chan struct{} {
		found := make(chan struct{})
		go func() {
			for {
				message, err := messages.Next()
				if err != nil {
					return // it was closed
				}
				if message.Headers().Get("event_id") == id {
					close(found)
					return
				}
			}
		}()
		return found
	}
	closeAll := end
	return arrived, func() { messages.Stop(); closeAll() }, nil
}

// startMake makes the target with the database's address and none of the other settings that this process may have.
func startMake(run Run, target, database, log string) (*exec.Cmd, chan struct{}, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, nil, fmt.Errorf("publisher: %w", err)
	}
	defer file.Close()
	command := exec.Command("make", "--no-print-directory", target)
	command.Dir, command.Stdout, command.Stderr = run.Root, file, file
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "POSTHASTE_") && !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "POSTHASTE_DATABASE_URL="+database, "POSTHASTE_NATS_URL="+run.NATS, "POSTHASTE_HTTP_LISTEN=127.0.0.1:0")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, nil, fmt.Errorf("publisher: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // make calls an interrupt an error
	}()
	return command, ended, nil
}

// untilSaid waits until the log has these words.
func untilSaid(ctx context.Context, log, words string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, building)
	defer cancel()
	for {
		said, err := os.ReadFile(log)
		if err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		if strings.Contains(string(said), words) {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("publisher: make ended without %q: %s", words, said[max(0, len(said)-2000):])
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("publisher: waited in vain for %q: %s", words, said[max(0, len(said)-2000):])
		}
	}
}

// psql inserts the event and returns its id.
func psql(ctx context.Context, database string) (string, error) {
	said, err := exec.CommandContext(ctx, "psql", "-X", "-A", "-t", "-q", "-c", emitted, database).Output()
	if err != nil {
		return "", fmt.Errorf("publisher: psql: %w", err)
	}
	return strings.TrimSpace(string(said)), nil
}
