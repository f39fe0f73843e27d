package natsbroker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// answerWithin bounds each question.
const answerWithin = 5 * time.Second

// codeStreamNotMatch is what a stream answers that is not the one that a message expects.
const codeStreamNotMatch = 10060

// examiner asks the servers.
type examiner struct {
	conn     *nats.Conn
	stream   jetstream.JetStream
	servers  string // without users and passwords
	wanted   string // the stream that must take the messages; empty: any
	denied   chan error
	findings []daemon.Finding
	seen     map[string]bool
}

// diagnose connects as a publisher does, and asks for every topic whether a message would arrive.
func diagnose(ctx context.Context, values *config.Values, options daemon.Options) []daemon.Finding {
	unreachable := func(err error) []daemon.Finding {
		return []daemon.Finding{{
			Code: "broker_unreachable", Text: "NATS: " + err.Error(),
			Advice: "is it up, does nats.url lead to it, and are user, password and certificates right?",
		}}
	}
	servers, user, err := split(serverURL.Get(values).Reveal())
	if err != nil {
		return unreachable(err)
	}
	connect := natsjetstream.Connect
	if options.Insecure {
		connect = natsjetstream.ConnectInsecure
	}
	x := &examiner{servers: servers, wanted: stream.Get(values), denied: make(chan error, 16), seen: map[string]bool{}}
	login := &login{values: values, logger: options.Logger, user: user}
	connected := make(chan struct{}, 1)
	// Each server was tried once before anybody tells of a failure, and then once more.
	failures, failed := strings.Count(servers, ",")+1, make(chan struct{})
	all := append(natsOptions(ctx, values, options.Logger), login.options(ctx)...)
	x.conn, err = connect(servers, append(all,
		nats.ConnectHandler(func(*nats.Conn) { connected <- struct{}{} }),
		nats.ReconnectErrHandler(func(*nats.Conn, error) { // called by one goroutine
			if failures--; failures == 0 {
				close(failed)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case x.denied <- err:
			default:
			}
		}))...)
	if err != nil {
		return unreachable(err)
	}
	defer x.conn.Close()
	waiting, cancel := context.WithTimeout(ctx, 2*answerWithin)
	defer cancel()
	select {
	case <-connected:
	case <-failed:
	case <-waiting.Done():
	}
	if err := ready(x.conn); err != nil {
		return unreachable(err)
	}
	if x.stream, err = jetstream.New(x.conn); err != nil {
		return unreachable(err)
	}
	for _, topic := range options.Topics {
		if !x.checkTopic(ctx, topic) {
			break
		}
	}
	return x.findings
}

// checkTopic sends a message that no stream takes: it expects one of another name. So the answer is the stream's own,
// and the way there and back, and the right to publish, are shown and nothing is kept. Subscribers without JetStream do
// get it. It returns false where the others would tell the same.
func (x *examiner) checkTopic(ctx context.Context, topic string) bool {
	if err := natsjetstream.CheckSubject(topic); err != nil { // sent, it could break the connection, or be a command
		x.add(daemon.Finding{
			Code: "topic_invalid", Text: fmt.Sprintf("the subject %q: %v", topic, err),
			Advice: "give the topic another name in the registry",
		})
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	message := nats.NewMsg(topic)
	message.Header.Set(jetstream.ExpectedStreamHeader, "posthaste-doctor-"+rand.Text())
	answers := make(chan *nats.Msg, 1)
	failed := make(chan error, 1)
	go func() {
		answer, err := x.conn.RequestMsgWithContext(ctx, message)
		if err != nil {
			failed <- err
			return
		}
		answers <- answer
	}()
	select {
	case answer := <-answers:
		x.read(ctx, topic, answer)
	case err := <-x.denied:
		x.add(daemon.Finding{
			Code: "topic_forbidden", Text: fmt.Sprintf("the subject %s: %v", topic, err),
			Advice: "give the user of the publisher the permission to publish to it, and to subscribe to _INBOX.>",
		})
	case err := <-failed:
		if !errors.Is(err, nats.ErrNoResponders) {
			x.add(daemon.Finding{
				Code: "broker_unreachable", Text: fmt.Sprintf("the subject %s: %v", topic, err),
				Advice: "look at the server's log, and whether the user may publish to it",
			})
			return true
		}
		return x.missing(ctx, topic)
	}
	return true
}

// missing: no stream has the subject, or there is no JetStream at all.
func (x *examiner) missing(ctx context.Context, topic string) bool {
	if _, err := x.stream.AccountInfo(ctx); errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		x.add(daemon.Finding{
			Code: "broker_no_jetstream", Text: "NATS: " + err.Error(),
			Advice: "start the servers with JetStream (jetstream { store_dir: ... }), and enable it for the account",
		})
		return false
	}
	name := x.wanted
	if name == "" {
		name = strings.ToUpper(strings.NewReplacer(".", "_", "*", "_", ">", "_").Replace(topic))
	}
	verb, subjects := "add", []string{topic}
	if stream, err := x.stream.Stream(ctx, name); err == nil {
		// An edit replaces the subjects: those that it has must stay.
		verb, subjects = "edit --force", append(slices.Clone(stream.CachedInfo().Config.Subjects), topic)
	}
	x.add(daemon.Finding{
		Code: "topic_missing", Text: fmt.Sprintf("no stream has the subject %s", topic),
		Fix: fmt.Sprintf("nats --server '%s' stream %s '%s' --subjects '%s'%s", x.servers, verb, name,
			strings.Join(subjects, ","),
			map[bool]string{true: " --storage file --defaults"}[verb == "add"]),
	})
	return true
}

// read understands the answer of a stream that has not taken the message.
func (x *examiner) read(ctx context.Context, topic string, answer *nats.Msg) {
	var said struct {
		Stream string              `json:"stream"`
		Error  *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &said); err != nil || said.Error == nil {
		x.add(daemon.Finding{
			Code: "topic_missing", Text: fmt.Sprintf("the subject %s is answered by something that is no stream", topic),
			Advice: "give the subject to a stream alone",
		})
		return
	}
	if said.Error.ErrorCode != codeStreamNotMatch {
		x.add(daemon.Finding{
			Code: "topic_forbidden", Text: fmt.Sprintf("the stream of the subject %s answers: %s", topic,
				said.Error.Description),
			Advice: "end what the stream says",
		})
		return
	}
	if said.Stream == "" {
		said.Stream, _ = x.stream.StreamNameBySubject(ctx, topic) // not everybody may ask
	}
	if x.wanted != "" && said.Stream != "" && said.Stream != x.wanted {
		x.add(daemon.Finding{
			Code: "topic_elsewhere", Text: fmt.Sprintf("the subject %s is in the stream %s, and nats.stream says %s", topic,
				said.Stream, x.wanted), Advice: "set nats.stream to it, or give the subject to the other stream",
		})
		return
	}
	if said.Stream != "" && !x.seen[said.Stream] {
		x.seen[said.Stream] = true
		x.checkStream(ctx, said.Stream)
	}
}

// checkStream looks at whether a stream keeps what it acknowledges. Who may not ask is not told.
func (x *examiner) checkStream(ctx context.Context, name string) {
	found, err := x.stream.Stream(ctx, name)
	if err != nil {
		return
	}
	info := found.CachedInfo()
	if info.Config.Storage == jetstream.MemoryStorage {
		x.add(daemon.Finding{
			Code: "stream_in_memory", Text: fmt.Sprintf("the stream %s is kept in memory", name),
			Advice: "make a stream that is kept in files, and move the subjects to it: the storage of a stream cannot " +
				"be changed",
		})
	}
	if info.Cluster != nil && info.Cluster.Name != "" && info.Config.Replicas < 2 {
		x.add(daemon.Finding{
			Code: "stream_not_replicated", Text: fmt.Sprintf("the stream %s of the cluster %s is on one server", name,
				info.Cluster.Name),
			Fix: fmt.Sprintf("nats --server '%s' stream edit '%s' --replicas 3 --force", x.servers, name),
		})
	}
}

func (x *examiner) add(finding daemon.Finding) { x.findings = append(x.findings, finding) }
