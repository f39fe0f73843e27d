package pubsubemulator

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
)

// The kinds of faults.
const (
	// KindError answers the call with an error and does nothing else.
	KindError = "error"
	// KindDelay holds the call back before it is handled.
	KindDelay = "delay"
	// KindDropAnswer handles the call and loses the answer.
	KindDropAnswer = "drop_answer"
)

// The ways in which KindDropAnswer loses an answer.
const (
	// ModeReset cuts the connection, with everything else that is under way on it.
	ModeReset = "reset"
	// ModeHang keeps the caller waiting until its deadline.
	ModeHang = "hang"
)

const methodStreamingPull = "StreamingPull"

// Fault says which calls go wrong and how. It is deterministic: the same calls in the same order meet
// the same faults.
type Fault struct {
	// Kind is one of KindError, KindDelay and KindDropAnswer.
	Kind string `json:"kind"`
	// Code is the gRPC code of a KindError, such as UNAVAILABLE.
	Code string `json:"code,omitempty"`
	// Milliseconds is how long a KindDelay lasts.
	Milliseconds int `json:"ms,omitempty"`
	// Mode is how a KindDropAnswer loses the answer. Defaults to ModeReset.
	Mode string `json:"mode,omitempty"`
	// Method is the gRPC method, such as Publish or StreamingPull. Defaults to Publish.
	Method string `json:"method,omitempty"`
	// Topic limits a fault of Publish to one topic, by its full name. Defaults to all topics.
	Topic string `json:"topic,omitempty"`
	// Count is how many calls go wrong before the fault wears off. Defaults to 0: all of them, until
	// the fault is removed.
	Count int `json:"count,omitempty"`
	// Every makes only each n-th matching call go wrong. Defaults to 1.
	Every int `json:"every,omitempty"`
}

// FaultStatus is a fault with what has become of it.
type FaultStatus struct {
	Fault
	// Seen counts the calls that matched method and topic.
	Seen int `json:"seen"`
	// Fired counts those of them that went wrong.
	Fired int `json:"fired"`
}

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (f Fault) withDefaults() (Fault, error) {
	if f.Method == "" {
		f.Method = "Publish"
	}
	if f.Every == 0 {
		f.Every = 1
	}
	if f.Kind == KindDropAnswer && f.Mode == "" {
		f.Mode = ModeReset
	}
	return f, errors.Join(append(f.checkKind(), f.checkScope()...)...)
}

// checkKind refuses fields that are missing for the kind of fault, or mean nothing to it.
func (f Fault) checkKind() []error {
	var errs []error
	reject := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	kinds := []string{KindError, KindDelay, KindDropAnswer}
	reject(!slices.Contains(kinds, f.Kind), "kind is %q: use one of %s", f.Kind, strings.Join(kinds, ", "))
	if f.Kind == KindError {
		code, err := f.grpcCode()
		reject(err != nil || code == codes.OK, "code is %q: use the name of a gRPC error, such as UNAVAILABLE", f.Code)
	}
	reject(f.Kind != KindError && f.Code != "", "code is only for kind %s", KindError)
	reject(f.Kind == KindDelay && f.Milliseconds < 1, "ms is %d: say how many milliseconds the delay lasts",
		f.Milliseconds)
	reject(f.Kind != KindDelay && f.Milliseconds != 0, "ms is only for kind %s", KindDelay)
	reject(f.Kind == KindDropAnswer && f.Mode != ModeReset && f.Mode != ModeHang,
		"mode is %q: use %s or %s", f.Mode, ModeReset, ModeHang)
	reject(f.Kind != KindDropAnswer && f.Mode != "", "mode is only for kind %s", KindDropAnswer)
	reject(f.Kind == KindDropAnswer && f.Method == methodStreamingPull,
		"%s has no answer to lose: use kind %s", methodStreamingPull, KindError)
	return errs
}

// checkScope refuses a fault that could never meet a call.
func (f Fault) checkScope() []error {
	var errs []error
	if known := knownMethods(); !slices.Contains(known, f.Method) {
		errs = append(errs, fmt.Errorf("method is %q: use one of %s", f.Method, strings.Join(known, ", ")))
	}
	if f.Topic != "" && f.Method != "Publish" {
		errs = append(errs, errors.New("topic is only for method Publish"))
	}
	if ok, _ := path.Match("projects/*/topics/*", f.Topic); f.Topic != "" && !ok {
		errs = append(errs, fmt.Errorf("topic is %q: use the full name, projects/P/topics/T", f.Topic))
	}
	if f.Count < 0 || f.Every < 0 {
		errs = append(errs, errors.New("count and every cannot be negative"))
	}
	return errs
}

func (f Fault) grpcCode() (codes.Code, error) {
	var code codes.Code
	err := code.UnmarshalJSON([]byte(strconv.Quote(f.Code)))
	return code, err
}

// knownMethods lists the methods of both services, sorted.
func knownMethods() []string {
	methods := []string{methodStreamingPull}
	for _, m := range append(slices.Clone(pb.Publisher_ServiceDesc.Methods), pb.Subscriber_ServiceDesc.Methods...) {
		methods = append(methods, m.MethodName)
	}
	slices.Sort(methods)
	return methods
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
	fault *Fault // the error or the lost answer; nil for none
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

// decide counts a call against every fault that it matches. Delays add up; the first error or lost
// answer decides, and the faults behind it do not see the call.
func (t *faultTable) decide(method, topic string) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	var v verdict
	for _, f := range t.faults {
		if f.Method != method || (f.Topic != "" && f.Topic != topic) || (f.Count > 0 && f.Fired >= f.Count) {
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
