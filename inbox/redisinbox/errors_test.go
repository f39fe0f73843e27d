package redisinbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What to do is in the answer of Handled and in the words, and they agree.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	for _, test := range []struct {
		err     error
		handled bool
	}{
		{&HeldError{RetryAfter: time.Second}, false},
		{&UnavailableError{Err: cause}, false},
		{&UnavailableError{Err: cause, Handled: true}, true},
		{&LostError{Err: cause}, false},
		{&LostError{Handled: true}, true},
	} {
		for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
			if Handled(err) != test.handled {
				t.Errorf("%v: handled is %v", err, !test.handled)
			}
			words := "do not acknowledge"
			if test.handled {
				words = "; acknowledge it"
			}
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%v: does not say %q", err, words)
			}
		}
		if unwrapped := errors.Unwrap(test.err); unwrapped != nil && !errors.Is(test.err, cause) {
			t.Errorf("%v: the cause is lost", test.err)
		}
	}
	if !Handled(nil) || Handled(cause) || (&LostError{}).Error() == "" {
		t.Error("nil is handled, and another's error is not")
	}
	// The outermost counts: a handler that failed may have met another guard's trouble.
	if Handled(&LostError{Err: &UnavailableError{Err: cause, Handled: true}}) {
		t.Error("a failed handler was taken for one that finished")
	}
}
