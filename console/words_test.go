package console

import (
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestSizesAndShares: nothing is rounded to what it is not.
func TestSizesAndShares(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 8192: "8.0 kB", 10_240: "10 kB", 3 << 30: "3.0 GB", 1 << 62: "4194304 TB",
	} {
		if got := sizeOf(bytes); got != want {
			t.Errorf("%d bytes are %q, want %q", bytes, got, want)
		}
	}
	for share, want := range map[float64]string{0: "0%", 0.001: "<1%", 0.5: "50%", 0.999: ">99%", 1: "100%"} {
		if got := percent(share); got != want {
			t.Errorf("%f is %q, want %q", share, got, want)
		}
	}
	waits := int64(1234)
	for want, n := range map[string]any{"1,234": &waits, "": (*int64)(nil), "1,000,000": 1e6, "-12": -12} {
		if got := number(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTopicsSentence counts each topic once, by what is worst of it.
func TestTopicsSentence(t *testing.T) {
	t.Parallel()
	failing := topicLine{Topic: operator.Topic{
		Name: "a", Failing: make([]operator.TopicFailure, 2), Paused: make([]operator.Pause, 1),
	}}
	paused := topicLine{Topic: operator.Topic{Name: "b", Paused: make([]operator.Pause, 1)}}
	limited := topicLine{Topic: operator.Topic{Name: "c", Limit: &operator.Limit{}}}
	healthy := topicLine{Topic: operator.Topic{Name: "d"}}
	for _, of := range []struct {
		lines     []topicLine
		allPaused bool
		says      string
		bad       bool
	}{
		{nil, false, "No relay has said yet where it publishes to.", false},
		{[]topicLine{healthy}, false, "All is well with 1 topic.", false},
		{[]topicLine{failing, paused, limited, healthy}, false, "Of 4 topics: 1 failing, 1 paused, 1 limited.", true},
		{[]topicLine{paused}, false, "Of 1 topic: 1 paused.", false},
		{nil, true, "Everything is paused: the relays publish nothing until somebody resumes it.", true},
	} {
		if says, bad := topicsSentence(of.lines, of.allPaused); says != of.says || bad != of.bad {
			t.Errorf("got %q, %t; want %q, %t", says, bad, of.says, of.bad)
		}
	}
}
