package pubsubemulator_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func TestRestartKeepsMessagesInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicA, EnableMessageOrdering: true})
	ids := c.publish(t, topicA, "k", numbers("", 6)...)
	c.drain(t, subA, 2)
	c.drain(t, subB, 4)
	c.pull(t, subA, 1) // delivered, not acknowledged

	stop(t, server)
	server = start(t, dir)
	c = dial(t, server)
	if stats := server.Stats(); stats.Accepted != 6 || stats.Replayed != 4 || stats.Topics != 1 ||
		stats.Subscriptions != 2 {
		t.Errorf("after the restart: %+v", stats)
	}
	more := c.publish(t, topicA, "k", "6")
	for sub, acked := range map[string]int{subA: 2, subB: 4} {
		texts, got := c.drain(t, sub, 7-acked)
		expectEqual(t, sub, texts, numbers("", 7)[acked:])
		expectEqual(t, sub+" ids", got, append(slices.Clone(ids[acked:]), more...))
		c.expectEmpty(t, sub)
	}
	if slices.Contains(ids, more[0]) {
		t.Errorf("id %s was given twice", more[0])
	}
}

func TestRestartKeepsConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	ctx := testContext(t)
	c.createTopics(t, topicA, topicB)
	c.createSub(t, &pb.Subscription{
		Name: subA, Topic: topicA, EnableMessageOrdering: true, AckDeadlineSeconds: 33, Filter: `attributes.kind = "good"`,
		MessageRetentionDuration: durationpb.New(time.Hour), Labels: map[string]string{"l": "v"},
		DeadLetterPolicy: &pb.DeadLetterPolicy{DeadLetterTopic: topicB, MaxDeliveryAttempts: 7},
	})
	_, err := c.UpdateSubscription(ctx, &pb.UpdateSubscriptionRequest{
		Subscription: &pb.Subscription{Name: subA, AckDeadlineSeconds: 44},
		UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"ack_deadline_seconds"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before, err := c.GetSubscription(ctx, &pb.GetSubscriptionRequest{Subscription: subA})
	if err != nil || before.GetAckDeadlineSeconds() != 44 {
		t.Fatal(before, err)
	}
	_, err = c.Publish(ctx, &pb.PublishRequest{Topic: topicA, Messages: []*pb.PubsubMessage{
		{Data: []byte("1"), Attributes: map[string]string{"kind": "bad"}},
		{Data: []byte("2"), Attributes: map[string]string{"kind": "good"}},
	}})
	if err != nil {
		t.Fatal(err)
	}

	stop(t, server)
	c = dial(t, start(t, dir))
	after, err := c.GetSubscription(ctx, &pb.GetSubscriptionRequest{Subscription: subA})
	if err != nil || !proto.Equal(before, after) {
		t.Errorf("before %v, after %v, %v", before, after, err)
	}
	texts, _ := c.drain(t, subA, 1)
	expectEqual(t, "filtered", texts, []string{"2"})
	c.expectEmpty(t, subA)
}

func TestRestartKeepsDeletions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	ctx := testContext(t)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicA})
	c.publish(t, topicA, "", "old")
	if _, err := c.DeleteSubscription(ctx, &pb.DeleteSubscriptionRequest{Subscription: subB}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: topicA}); err != nil {
		t.Fatal(err)
	}
	c.createTopics(t, topicA) // a new topic of the old name, to which subA does not belong
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicA})
	c.publish(t, topicA, "", "new")

	stop(t, server)
	c = dial(t, start(t, dir))
	for sub, want := range map[string]string{subA: "old", subB: "new"} {
		texts, _ := c.drain(t, sub, 1)
		expectEqual(t, sub, texts, []string{want})
		c.expectEmpty(t, sub)
	}
}

func TestAckFromBeforeRestartAcksNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	before := c.publish(t, topicA, "", "1") // the last line of the journal
	old := c.pull(t, subA, 1)[0]
	stop(t, server)

	c = dial(t, start(t, dir))
	if after := c.publish(t, topicA, "", "2"); after[0] == before[0] {
		t.Errorf("id %s was given twice", after[0])
	}
	c.ack(t, subA, old) // it is unknown now; at worst its own message comes again
	var texts []string
	for _, r := range c.pull(t, subA, 2) {
		texts = append(texts, string(r.GetMessage().GetData()))
	}
	slices.Sort(texts)
	expectEqual(t, "after the restart", texts, []string{"1", "2"})
}

func TestTornLinesAreCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA})
	ids := c.publish(t, topicA, "", "1", "2")
	stop(t, server)
	appendTo(t, filepath.Join(dir, "messages.jsonl"), `{"seq":99,"id":"99","topic":"projects/p/top`)
	appendTo(t, filepath.Join(dir, "state.jsonl"),
		`{"seq":98,"method":"Acknowledge","subscription":"`+subA+`","ids":["`+ids[0])
	if got := journal(t, dir); len(got) != 2 {
		t.Errorf("a reader sees %v", got)
	}

	c = dial(t, start(t, dir))
	c.publish(t, topicA, "", "3")
	if got := journal(t, dir); len(got) != 3 || string(got[2].Data) != "3" {
		t.Errorf("the journal continues with %v", got)
	}
	if got := c.pull(t, subA, 3); len(got) != 3 {
		t.Errorf("delivered %v", got)
	}
}

func TestDamagedJournalIsAnError(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"messages.jsonl", "state.jsonl"} {
		dir := t.TempDir()
		appendTo(t, filepath.Join(dir, file), "{\"seq\":1}\nnonsense\n{\"seq\":3}\n")
		_, err := pubsubemulator.Start(pubsubemulator.Config{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), file+" line 2") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestDirectoryBelongsToOneEmulator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	if _, err := pubsubemulator.Start(pubsubemulator.Config{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "another emulator") {
		t.Errorf("the second emulator got %v", err)
	}
	stop(t, server)
	start(t, dir)
}

// A message stays deliverable however old it is, and a long history costs little.
func TestLongHistoryStartsFast(t *testing.T) {
	t.Parallel()
	const acked = 100_000
	dir := t.TempDir()
	writeHistory(t, dir, acked)
	begin := time.Now()
	server := start(t, dir)
	t.Logf("started with %d acknowledged messages in %v", acked, time.Since(begin))
	if stats := server.Stats(); stats.Accepted != acked+1 || stats.Replayed != 1 {
		t.Errorf("after the start: %+v", stats)
	}
	texts, _ := dial(t, server).drain(t, subA, 1)
	expectEqual(t, "left over", texts, []string{"last"})
}

// writeHistory makes the journal of a run long ago in which all messages but the last were acked.
func writeHistory(t *testing.T, dir string, acked int) {
	t.Helper()
	write := func(name string, lines func(w *bufio.Writer)) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		lines(w)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	const line = `{"seq":%d,"id":"%[1]d","topic":%q,"publish_time":"2020-01-01T00:00:00Z","data":%q}` + "\n"
	write("messages.jsonl", func(w *bufio.Writer) {
		for i := range acked {
			fmt.Fprintf(w, line, i+10, topicA, "eyJvcmRlciI6MTIzNDU2Nzg5MCwiYW1vdW50IjoxMDAwfQ==")
		}
		fmt.Fprintf(w, line, acked+10, topicA, "bGFzdA==")
	})
	write("state.jsonl", func(w *bufio.Writer) {
		fmt.Fprintf(w, `{"seq":1,"method":"CreateTopic","request":{"name":%q}}`+"\n", topicA)
		fmt.Fprintf(w, `{"seq":2,"method":"CreateSubscription","request":{"name":%q,"topic":%q}}`+"\n", subA, topicA)
		for i := range acked {
			fmt.Fprintf(w, `{"seq":%d,"method":"Acknowledge","subscription":%q,"ids":["%d"]}`+"\n", acked+20+i, subA, i+10)
		}
	})
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
