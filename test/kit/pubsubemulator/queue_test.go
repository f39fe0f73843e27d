package pubsubemulator_test

import (
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// TestALongQueue: a backlog waits, in order, through a restart, and a subscription that is made meanwhile gets what is
// published from then on.
func TestALongQueue(t *testing.T) {
	t.Parallel()
	const n = 1200
	dir := t.TempDir()
	server := start(t, dir)
	c := dial(t, server)
	c.createTopics(t, topicA)
	c.createSub(t, &pb.Subscription{Name: subA, Topic: topicA, EnableMessageOrdering: true})
	c.publish(t, topicA, "k", numbers("", n)[:1000]...)
	if stats := server.Stats(); stats.Waiting != 1000 {
		t.Errorf("%d messages wait, want 1000", stats.Waiting)
	}
	texts, _ := c.drain(t, subA, 100)
	if stats := server.Stats(); stats.Waiting != 900 {
		t.Errorf("%d messages wait after 100 were acknowledged, want 900", stats.Waiting)
	}
	stop(t, server)
	server = start(t, dir)
	c = dial(t, server)
	if stats := server.Stats(); stats.Waiting != 900 || stats.Replayed != 900 {
		t.Errorf("after the restart %+v", stats)
	}
	c.createSub(t, &pb.Subscription{Name: subB, Topic: topicA, EnableMessageOrdering: true})
	c.publish(t, topicA, "k", numbers("", n)[1000:]...)
	more, _ := c.drain(t, subA, n-100) // though nobody reads the other one
	expectEqual(t, subA, append(texts, more...), numbers("", n))
	c.expectEmpty(t, subA)
	later, _ := c.drain(t, subB, n-1000)
	expectEqual(t, subB, later, numbers("", n)[1000:])
	c.expectEmpty(t, subB)
}
