package pubsubemulator_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func inject(t *testing.T, server *pubsubemulator.Server, faults ...pubsubemulator.Fault) {
	t.Helper()
	for _, f := range faults {
		if err := server.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
}

func (c rpc) tryPublish(ctx context.Context, topic, text string) codes.Code {
	_, err := c.Publish(ctx, &pb.PublishRequest{Topic: topic, Messages: []*pb.PubsubMessage{{Data: []byte(text)}}})
	return status.Code(err)
}

func TestErrorFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA, topicB)
	inject(t, server,
		pubsubemulator.Fault{Kind: "error", Code: "RESOURCE_EXHAUSTED", Topic: topicA, Count: 2, Every: 2},
		pubsubemulator.Fault{Kind: "error", Code: "PERMISSION_DENIED", Method: "GetTopic", Count: 1})
	ctx := testContext(t)
	const busy = codes.ResourceExhausted
	for i, want := range []codes.Code{codes.OK, busy, codes.OK, busy, codes.OK, codes.OK} {
		if got := c.tryPublish(ctx, topicA, "x"); got != want {
			t.Errorf("call %d: got %v, want %v", i, got, want)
		}
		if got := c.tryPublish(ctx, topicB, "x"); got != codes.OK {
			t.Errorf("call %d to the other topic: got %v", i, got)
		}
	}
	for _, want := range []codes.Code{codes.PermissionDenied, codes.OK} {
		if _, err := c.GetTopic(ctx, &pb.GetTopicRequest{Topic: topicA}); status.Code(err) != want {
			t.Errorf("GetTopic: got %v, want %v", err, want)
		}
	}
	if kept := journal(t, dir); len(kept) != 10 {
		t.Errorf("journalled %d messages, want the 10 that were accepted", len(kept))
	}
	if got := server.Stats().Faulted["error"]; got != 3 {
		t.Errorf("%d errors are counted, want 3", got)
	}
}

func TestClientRetriesPastErrorFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	dial(t, server).createTopics(t, topicA)
	inject(t, server, pubsubemulator.Fault{Kind: "error", Code: "UNAVAILABLE", Count: 2})
	publisher := newClient(t, server).Publisher(topicA)
	defer publisher.Stop()
	ctx := testContext(t)
	if _, err := publisher.Publish(ctx, &pubsub.Message{Data: []byte("x")}).Get(ctx); err != nil {
		t.Fatal(err)
	}
	if kept := journal(t, dir); len(kept) != 1 || server.Stats().Faulted["error"] != 2 {
		t.Errorf("journalled %v, stats %+v", kept, server.Stats())
	}
}

func TestDelayHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA, topicB)
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicB})
	inject(t, server, pubsubemulator.Fault{Kind: "delay", Milliseconds: 3_600_000, Topic: topicA, Count: 1})
	held := make(chan codes.Code, 1)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	go func() { held <- c.tryPublish(ctx, topicA, "held") }()
	eventually.True(t, "the publish is held up", func() bool { return server.Stats().Faulted["delay"] == 1 })

	c.publish(t, topicB, "", "other topic")
	c.publish(t, topicA, "", "other caller")
	c.drain(t, subB, 1)
	cancel()
	if got := <-held; got != codes.Canceled {
		t.Errorf("the publish that was held up ended with %v", got)
	}
	if kept := journal(t, dir); len(kept) != 2 {
		t.Errorf("journalled %v", kept)
	}
}

func TestDelayIsOver(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	inject(t, server, pubsubemulator.Fault{Kind: "delay", Milliseconds: 50}, pubsubemulator.Fault{
		Kind: "delay", Milliseconds: 70,
	})
	begin := time.Now()
	c.publish(t, topicA, "", "x")
	if took := time.Since(begin); took < 120*time.Millisecond {
		t.Errorf("two delays took %v", took)
	}
}

func TestDropAnswer(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]codes.Code{"hang": codes.Canceled, "reset": codes.Unavailable} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := start(t, dir)
			c := dial(t, server)
			c.createTopics(t, topicA)
			c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
			inject(t, server, pubsubemulator.Fault{Kind: "drop_answer", Mode: mode, Count: 1})
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			answer := make(chan codes.Code, 1)
			go func() { answer <- c.tryPublish(ctx, topicA, "lost answer") }()
			if mode == "hang" { // until the publisher has waited for long enough, which is when the message is there
				eventually.True(t, "it is accepted", func() bool { return server.Stats().Accepted == 1 })
				cancel()
			}
			if got := <-answer; got != want {
				t.Errorf("the publisher got %v, want %v", got, want)
			}
			if kept := journal(t, dir); len(kept) != 1 {
				t.Errorf("journalled %v", kept)
			}
			texts, _ := c.drain(t, subA, 1)
			expectEqual(t, "delivered", texts, []string{"lost answer"})
		})
	}
}

// The client library publishes again when it gets no answer: the duplicate that a consumer must bear.
func TestDropAnswerMakesTheClientPublishTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	inject(t, server, pubsubemulator.Fault{Kind: "drop_answer", Count: 1})
	client := newClient(t, server)
	publisher := client.Publisher(topicA)
	defer publisher.Stop()
	ctx := testContext(t)
	id, err := publisher.Publish(ctx, &pubsub.Message{Data: []byte("x")}).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kept := journal(t, dir)
	if len(kept) != 2 || kept[1].ID != id || kept[0].ID == id {
		t.Errorf("the client has id %s, journalled %v", id, kept)
	}
	receive(t, client, subA, 2)
}

func TestStreamFault(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.publish(t, topicA, "", "x")
	inject(t, server, pubsubemulator.Fault{Kind: "error", Code: "UNAVAILABLE", Method: "StreamingPull", Count: 2})
	receive(t, newClient(t, server), subA, 1)
	if got := server.Stats().Faulted["error"]; got != 2 {
		t.Errorf("%d streams met the fault, want 2", got)
	}
}

func TestFaultPort(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	for _, step := range []struct {
		method, path, body string
		code               int
		want               string // a part of the answer
	}{
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/faults", "", 200, "[]"},
		{"POST", "/faults", `{"kind":"delay","ms":1}`, 200, `"method":"Publish","every":1,"seen":0,"fired":0`},
		{"POST", "/faults", `{"kind":"error","code":"UNAVAILABLE","count":3}`, 200, `},{"kind":"error","code":"UNAVAILABLE"`},
		{"PUT", "/faults", `{"kind":"drop_answer"}`, 200, `[{"kind":"drop_answer","mode":"reset"`},
		{"GET", "/stats", "", 200, `"accepted":0`},
		{"POST", "/faults", `{"kind":"delay","ms":1,"chance":0.5}`, 400, `unknown field "chance"`},
		{"POST", "/faults", `{"kind":"delay","ms":1}{"kind":"delay","ms":1}`, 400, "one at a time"},
		{"POST", "/faults", `{"kind":"explode"}`, 400, "use one of error, delay, drop_answer, late"},
		{"POST", "/faults", `{"kind":"error","code":"OK"}`, 400, "such as UNAVAILABLE"},
		{
			"POST", "/faults", `{"kind":"delay","mode":"hang","method":"Publsh","count":-1}`, 400,
			"count and every cannot be negative",
		},
		{"POST", "/faults", `{"kind":"drop_answer","method":"StreamingPull"}`, 400, "no answer to lose"},
		{"POST", "/faults", `{"kind":"delay","ms":1,"topic":"orders"}`, 400, "projects/P/topics/T"},
		{"POST", "/faults", `{"kind":"` + strings.Repeat("x", 1<<17) + `"}`, 413, "too large"},
		{"DELETE", "/faults", "", 200, "[]"},
		{"PATCH", "/faults", "", 405, ""},
	} {
		code, body := call(t, step.method, "http://"+server.FaultAddr()+step.path, step.body)
		if code != step.code || !strings.Contains(body, step.want) {
			t.Errorf("%s %s %.80s: %d %s", step.method, step.path, step.body, code, body)
		}
	}
	var stats pubsubemulator.Stats
	if _, body := call(t, "GET", "http://"+server.FaultAddr()+"/stats", ""); json.Unmarshal([]byte(body), &stats) != nil {
		t.Errorf("stats are %s", body)
	}
}

func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(testContext(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := pubsubemulator.Start(pubsubemulator.Config{Addr: "0.0.0.0:1", FaultAddr: "nowhere"})
	for _, want := range []string{
		"set Config.Dir", "Addr \"0.0.0.0:1\" is not a loopback address", "FaultAddr \"nowhere\" is not host:port",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
