package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// configured writes a configuration of outbox-publisher with two topics, and returns its file.
func (e *env) configured(lines ...string) string {
	e.t.Helper()
	folder := e.t.TempDir()
	registry := "contracts:\n"
	for _, name := range []string{"orders", "mails"} {
		registry += fmt.Sprintf("  - type: %s_changed\n    aggregate: order\n    topic: %[1]s\n    schema: {type: "+
			"object}\n", name)
	}
	text := "registry.file: " + filepath.Join(folder, "registry.yaml") + "\n" + strings.Join(lines, "\n") + "\n"
	for name, content := range map[string]string{"registry.yaml": registry, "publisher.yaml": text} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			e.t.Fatal(err)
		}
	}
	return filepath.Join(folder, "publisher.yaml")
}

// TestDoctorOfNATS: what keeps messages from a stream, or the stream from keeping them. No stream keeps anything of the
// doctor's.
func TestDoctorOfNATS(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	broker, js := startNATS(t, e)
	file := e.configured("broker: nats", "nats.url: nats://publisher:p4ss@"+broker.Address)
	want := func(codes_ ...string) {
		t.Helper()
		report := e.doctor(e.url, "--config", file)
		if got := codes(report); !slices.Equal(got, codes_) {
			t.Errorf("found %q, want %q: %+v", got, codes_, report)
		}
		for _, finding := range report.Findings {
			if strings.Contains(finding.Fix+finding.Problem, "p4ss") || finding.Fix+finding.Advice == "" {
				t.Errorf("got %+v", finding)
			}
		}
	}
	want("topic_missing")
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "ALL", Subjects: []string{"orders", "mails"}, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
	want("stream_in_memory")
	if info, err := stream.Info(ctx); err != nil || info.State.Msgs != 0 {
		t.Errorf("something was published: %+v, %v", info, err)
	}
	if err := js.DeleteStream(ctx, "ALL"); err != nil {
		t.Fatal(err)
	}
	// A stream that lacks one subject is told to have it beside those that it has.
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "ALL", Subjects: []string{"orders", "bills.>"},
	}); err != nil {
		t.Fatal(err)
	}
	file = e.configured("broker: nats", "nats.url: nats://publisher:p4ss@"+broker.Address, "nats.stream: ALL")
	want("topic_missing")
	const edit = " stream edit --force 'ALL' --subjects 'orders,bills.>,mails'"
	if found := e.doctor(e.url, "--config", file).Findings; len(found) != 1 || !strings.HasSuffix(found[0].Fix, edit) {
		t.Errorf("the fix does not keep the subjects: %+v", found)
	}
	file = e.configured("broker: nats", "nats.url: nats://publisher:p4ss@"+broker.Address)
	if err := js.DeleteStream(ctx, "ALL"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "ALL", Subjects: []string{
		"orders",
		"mails",
	}}); err != nil {
		t.Fatal(err)
	}
	want()
	file = e.configured("broker: nats", "nats.url: nats://publisher:p4ss@"+broker.Address, "nats.stream: OTHER")
	want("topic_elsewhere")
	file = e.configured("broker: nats", "nats.url: nats://reader:p4ss@"+broker.Address)
	want("topic_forbidden")
	file = e.configured("broker: nats", "nats.url: nats://127.0.0.1:1")
	want("broker_unreachable")
	file = e.configured("broker: nats", "relay.batch: none")
	want("config_invalid")
}

// TestTopicsTest asks about topics and nothing is kept; with --send it publishes one message that says what it is.
func TestTopicsTest(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	broker, js := startNATS(t, e)
	file := e.configured("broker: nats", "nats.url: nats://publisher:p4ss@"+broker.Address)
	test := func(want int, says string, args ...string) {
		t.Helper()
		code, stdout, stderr := e.run(e.url, "", filepath.Join(e.bin, "outboxctl"),
			append([]string{"topics", "test", "--config", file}, args...)...)
		if code != want || !regexp.MustCompile(says).MatchString(stdout) || strings.Contains(stdout+stderr, "p4ss") {
			t.Errorf("%q ended with %d: %s%s, want %d and %s", args, code, stdout, stderr, want, says)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "ALL", Subjects: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	test(0, `orders +would take a message`, "orders")
	test(1, `mails +see why +topic_missing: .*\n(?s:.*)orders +would take a message`, "--all")
	if info, err := stream.Info(ctx); err != nil || info.State.Msgs != 0 {
		t.Errorf("something was published: %+v, %v", info, err)
	}
	test(0, `"ok": true,(?s:.*)"sent": "`, "orders", "--send", "-o", "json")
	message, err := stream.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	attributes := natsjetstream.Attributes(message.Header)
	if attributes["event_type"] != outbox.TestType || attributes["test"] != "true" || attributes["outbox_seq"] != "" {
		t.Errorf("the message has %v", attributes)
	}
	for _, invalid := range []string{"bad topic *", "orders.*", "$JS.API.STREAM.DELETE.ALL"} {
		test(1, `see why +topic_invalid: `, invalid)
	}
	if _, err := js.Stream(ctx, "ALL"); err != nil {
		t.Errorf("a name of a topic was taken for a command: %v", err)
	}
	test(2, ``, "orders", "--all")
}

// startNATS starts a server with a user who may publish and one who may not.
func startNATS(t *testing.T, e *env) (*server.Server, jetstream.JetStream) {
	t.Helper()
	folder := t.TempDir()
	settings := filepath.Join(folder, "nats.conf")
	if err := os.WriteFile(settings, []byte(`authorization { users: [
		{user: admin, password: p4ss}, {user: publisher, password: p4ss},
		{user: reader, password: p4ss, permissions: {publish: {deny: ["orders", "mails"]}}}] }`), 0o600); err != nil {
		t.Fatal(err)
	}
	broker, err := server.NewNATS(folder, "-c", settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	if err := broker.Start(e.t.Context()); err != nil {
		t.Fatal(err)
	}
	var conn *nats.Conn
	if err := eventually.Works(t.Context(), func() (err error) {
		conn, err = nats.Connect("nats://admin:p4ss@"+broker.Address, nats.Timeout(eventually.Patience))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	return broker, js
}

// TestDoctorOfPubSub: topics that are missing, and those that nobody subscribes to.
func TestDoctorOfPubSub(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[1], build(t))
	emulator, client := pubsubtest.Start(t, "orders")
	file := e.configured("broker: pubsub", "pubsub.project: p", "pubsub.endpoint: "+emulator.Addr())
	want := func(want ...string) {
		t.Helper()
		report := e.doctor(e.url, "--config", file)
		if got := codes(report); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q: %+v", got, want, report)
		}
	}
	want("topic_missing", "topic_no_subscription")
	if _, err := client.TopicAdminClient.CreateTopic(t.Context(), &pb.Topic{Name: "projects/p/topics/mails"}); err != nil {
		t.Fatal(err)
	}
	want("topic_no_subscription")
	for _, topic := range []string{"orders", "mails"} {
		if _, err := client.SubscriptionAdminClient.CreateSubscription(t.Context(), &pb.Subscription{
			Name: "projects/p/subscriptions/" + topic, Topic: "projects/p/topics/" + topic, EnableMessageOrdering: true,
		}); err != nil {
			t.Fatal(err)
		}
	}
	want()
}

// TestDoctorOfRedis: one that may forget, and the commands that end it.
func TestDoctorOfRedis(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	cache, err := server.NewRedis(t.TempDir(), "--maxmemory-policy", "allkeys-lru")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	if err := cache.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.variable = []string{"POSTHASTE_REDIS_URL=redis://" + cache.Address}
	report := e.doctor(e.url)
	if got := codes(report); !slices.Equal(got, []string{"redis_may_evict", "redis_no_persistence"}) {
		t.Errorf("found %q: %+v", got, report)
	}
	for _, finding := range report.Findings {
		e.apply(finding)
	}
	if left := e.doctor(e.url); len(left.Findings) > 0 {
		t.Errorf("after the fixes: %+v", left)
	}
	e.variable = nil
	for _, address := range []string{
		"redis://u:s3cr3t@192.0.2.1:6379", "rediss://u:s3cr3t@192.0.2.1:6379?skip_verify=true",
	} {
		code, stdout, stderr := e.run(e.url, "", filepath.Join(e.bin, "outboxctl"), "doctor", "--redis-url", address)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "192.0.2.1 is not on this machine: write rediss://") ||
			strings.Contains(stderr, "s3cr3t") {
			t.Errorf("plain text: exit code %d\n%s%s", code, stdout, stderr)
		}
	}
	e.variable = []string{"POSTHASTE_REDIS_URL=redis://127.0.0.1:1"}
	if got := codes(e.doctor(e.url)); !slices.Equal(got, []string{"redis_unreachable"}) {
		t.Errorf("found %q", got)
	}
}

// TestConfig: every key with its value and where it comes from, no secret, and everything that is wrong at once.
func TestConfig(t *testing.T) {
	t.Parallel()
	e := &env{t: t, bin: build(t), variable: []string{"POSTHASTE_RELAY_LEASE=40s"}}
	file := e.configured("broker: nats", "nats.url: nats://publisher:p4ss@127.0.0.1:1")
	code, stdout, stderr := e.run("postgres://relay:s3cret@127.0.0.1/db", "", filepath.Join(e.bin, "outboxctl"), "config",
		"--config", file, "--", "--relay-batch=77")
	for _, want := range []string{
		`(?m)^relay.batch +77 +flag`, `(?m)^relay.lease +40s +environment`, `(?m)^broker +nats +`,
		`(?m)^relay.drain +20s +default`,
	} {
		if !matches(want, stdout) {
			t.Errorf("%s is missing", want)
		}
	}
	if code != 0 || stderr != "" || strings.Contains(stdout, "p4ss") || strings.Contains(stdout, "s3cret") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	file = e.configured("broker: nuts", "relay.batch: none")
	code, stdout, stderr = e.run("postgres://relay@127.0.0.1/db", "", filepath.Join(e.bin, "outboxctl"), "config",
		"--config",
		file, "-o", "json")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "invalid_configuration") || !strings.Contains(stderr,
		"nuts") ||
		!strings.Contains(stderr, "relay.batch") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
