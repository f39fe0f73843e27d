package pubsubemulator

import (
	"slices"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The kinds of faults.
const (
	// KindError answers the call with an error and does nothing else.
	KindError = "error"
	// KindDelay holds the call back before it is handled.
	KindDelay = "delay"
	// KindDropAnswer handles the call and loses the answer.
	KindDropAnswer = "drop_answer"
	// KindLate handles the call when the caller has gone: at its deadline, or because it gave up. Google says of such
	// calls that they may or may not be executed. See [Server.Release] for the moment.
	KindLate = "late"
	// KindBlackHole makes the call's connection silent: what comes in is lost, and nothing goes out any more, pings
	// included, until the client gives the connection up. The call is not handled.
	KindBlackHole = "black_hole"
	// KindNoPermission answers TestIamPermissions with no permission. Who publishes nevertheless needs a KindError
	// too.
	KindNoPermission = "no_permission"
)

// The ways in which KindDropAnswer loses an answer.
const (
	// ModeReset cuts the connection, with everything else that is under way on it.
	ModeReset = "reset"
	// ModeHang keeps the caller waiting until its deadline.
	ModeHang = "hang"
)

const (
	methodPublish       = "Publish"
	methodStreamingPull = "StreamingPull"
	// AnyMethod in [Fault.Method] is every call: for the latency of a network.
	AnyMethod = "*"
)

// Fault says which calls go wrong and how. It is deterministic: the same calls in the same order meet
// the same faults.
//
// A schema or a transform that refuses everything, as after a mistake, is a KindError with INVALID_ARGUMENT of a
// topic.
type Fault struct {
	// Kind is one of KindError, KindDelay, KindDropAnswer, KindLate, KindBlackHole and KindNoPermission.
	Kind string `json:"kind"`
	// Code is the gRPC code of a KindError, such as UNAVAILABLE.
	Code string `json:"code,omitempty"`
	// RetryAfterMilliseconds adds to a KindError the detail with which a service says when to come again: RetryInfo.
	// Defaults to 0: no detail.
	RetryAfterMilliseconds int `json:"retry_after_ms,omitempty"`
	// Milliseconds is how long a KindDelay lasts. For a KindLate it is how long after the caller has gone the call is
	// handled; 0 is not before [Server.Release].
	Milliseconds int `json:"ms,omitempty"`
	// AfterMessages lets a StreamingPull begin, and breaks it with the KindError behind that many messages. The
	// stream counts as gone wrong from its beginning. Defaults to 0: the stream does not open.
	AfterMessages int `json:"after_messages,omitempty"`
	// Mode is how a KindDropAnswer loses the answer. Defaults to ModeReset.
	Mode string `json:"mode,omitempty"`
	// Method is the gRPC method, such as Publish or StreamingPull, or AnyMethod. Defaults to Publish, and for a
	// KindNoPermission to TestIamPermissions.
	Method string `json:"method,omitempty"`
	// Topic limits a fault of Publish or TestIamPermissions to one topic, by its full name. Defaults to all topics.
	Topic string `json:"topic,omitempty"`
	// Key limits a fault of Publish to requests with a message of that ordering key. Defaults to all requests.
	Key string `json:"key,omitempty"`
	// Attribute limits a fault of Publish to requests with a message that has this attribute, as name=value. Defaults
	// to all requests.
	Attribute string `json:"attribute,omitempty"`
	// Connection limits the fault to the calls of one connection: the n-th that the emulator has accepted since its
	// start. Defaults to 0: all connections.
	Connection int `json:"connection,omitempty"`
	// EveryConnection limits the fault to the calls of each n-th connection. Defaults to 0: all connections.
	EveryConnection int `json:"every_connection,omitempty"`
	// Count is how many calls go wrong before the fault wears off. Defaults to 0: all of them, until
	// the fault is removed.
	Count int `json:"count,omitempty"`
	// Every makes only each n-th matching call go wrong. Defaults to 1.
	Every int `json:"every,omitempty"`
}

// FaultStatus is a fault with what has become of it.
type FaultStatus struct {
	Fault
	// Seen counts the calls that matched what the fault is limited to.
	Seen int `json:"seen"`
	// Fired counts those of them that went wrong.
	Fired int `json:"fired"`
}

// faultTable holds the faults in the order in which they were added.
type faultTable struct {
	mu     sync.Mutex
	faults []*FaultStatus
	fired  map[string]int // by kind, removed faults included
}

// verdict is what the faults make of one call.
type verdict struct {
	delay time.Duration
	fault *Fault // of any other kind; nil for none
}

// add puts faults behind those that there are; replace removes those first.
func (t *faultTable) add(replace bool, faults ...Fault) error {
	var checked []*FaultStatus
	for _, f := range faults {
		f, err := f.withDefaults()
		if err != nil {
			return err
		}
		checked = append(checked, &FaultStatus{Fault: f})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if replace {
		t.faults = nil
	}
	t.faults = append(t.faults, checked...)
	return nil
}

// list copies the faults.
func (t *faultTable) list() []FaultStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]FaultStatus, 0, len(t.faults))
	for _, f := range t.faults {
		list = append(list, *f)
	}
	return list
}

// decide counts a call against every fault that it matches. Delays add up; the first fault of another kind decides,
// and the faults behind it do not see the call.
func (t *faultTable) decide(c call) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	var v verdict
	for _, f := range t.faults {
		if !f.matches(c) || (f.Count > 0 && f.Fired >= f.Count) {
			continue
		}
		f.Seen++
		if f.Seen%f.Every != 0 {
			continue
		}
		f.Fired++
		t.fired[f.Kind]++
		if f.Kind != KindDelay {
			decided := f.Fault
			v.fault = &decided
			return v
		}
		v.delay += time.Duration(f.Milliseconds) * time.Millisecond
	}
	return v
}

// call is what a fault can be limited to.
type call struct {
	method     string
	connection int
	topic      string              // of Publish, and of TestIamPermissions
	messages   []*pb.PubsubMessage // of Publish
}

// matches tells whether the fault is meant for such calls.
func (f Fault) matches(c call) bool {
	if f.Method != AnyMethod && f.Method != c.method {
		return false
	}
	if c.method == methodStreamingPull && !f.meansStreams() {
		return false
	}
	if f.Connection > 0 && f.Connection != c.connection {
		return false
	}
	if f.EveryConnection > 0 && (c.connection == 0 || c.connection%f.EveryConnection != 0) {
		return false
	}
	if f.Topic != "" && f.Topic != c.topic {
		return false
	}
	if f.Key == "" && f.Attribute == "" {
		return true
	}
	return slices.ContainsFunc(c.messages, f.meets)
}

// meansStreams tells whether a StreamingPull can meet that kind: it has no answer that could be lost or late.
func (f Fault) meansStreams() bool { return f.Kind != KindDropAnswer && f.Kind != KindLate }

// meets tells whether the fault is meant for that message.
func (f Fault) meets(m *pb.PubsubMessage) bool {
	if f.Key != "" && f.Key != m.GetOrderingKey() {
		return false
	}
	if f.Attribute == "" {
		return true
	}
	name, value, _ := strings.Cut(f.Attribute, "=")
	got, ok := m.GetAttributes()[name]
	return ok && got == value
}

// status is the error of a KindError.
func (f Fault) status() error {
	code, err := f.grpcCode()
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	st := status.Newf(code, "injected fault: %s of %s", f.Code, f.Method)
	if f.RetryAfterMilliseconds > 0 {
		after := time.Duration(f.RetryAfterMilliseconds) * time.Millisecond
		if st, err = st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return st.Err()
}
