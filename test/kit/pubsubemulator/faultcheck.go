package pubsubemulator

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
)

// withDefaults fills the zero fields and reports everything that is wrong at once.
func (f Fault) withDefaults() (Fault, error) {
	if f.Method == "" && f.Kind == KindNoPermission {
		f.Method = methodTestIamPermissions
	}
	if f.Method == "" {
		f.Method = methodPublish
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
	kinds := []string{KindError, KindDelay, KindDropAnswer, KindLate, KindBlackHole, KindNoPermission}
	reject(!slices.Contains(kinds, f.Kind), "kind is %q: use one of %s", f.Kind, strings.Join(kinds, ", "))
	if f.Kind == KindError {
		code, err := f.grpcCode()
		reject(err != nil || code == codes.OK, "code is %q: use the name of a gRPC error, such as UNAVAILABLE", f.Code)
	}
	reject(f.Kind != KindError && (f.Code != "" || f.RetryAfterMilliseconds != 0),
		"code and retry_after_ms are only for kind %s", KindError)
	reject(f.Kind == KindDelay && f.Milliseconds < 1, "ms is %d: say how many milliseconds the delay lasts",
		f.Milliseconds)
	reject(f.Kind != KindDelay && f.Kind != KindLate && f.Milliseconds != 0, "ms is only for kinds %s and %s",
		KindDelay, KindLate)
	reject(f.Milliseconds < 0 || f.RetryAfterMilliseconds < 0, "milliseconds cannot be negative")
	reject(f.Kind == KindDropAnswer && f.Mode != ModeReset && f.Mode != ModeHang,
		"mode is %q: use %s or %s", f.Mode, ModeReset, ModeHang)
	reject(f.Kind != KindDropAnswer && f.Mode != "", "mode is only for kind %s", KindDropAnswer)
	reject(!f.meansStreams() && f.Method == methodStreamingPull,
		"%s has no answer to lose, and is not late: use kind %s", methodStreamingPull, KindError)
	reject(f.AfterMessages != 0 && (f.Kind != KindError || f.Method != methodStreamingPull || f.AfterMessages < 0),
		"after_messages is a number of messages, only for kind %s of method %s", KindError, methodStreamingPull)
	return errs
}

// checkScope refuses a fault that could never meet a call.
func (f Fault) checkScope() []error {
	var errs []error
	if known := knownMethods(); !slices.Contains(known, f.Method) {
		errs = append(errs, fmt.Errorf("method is %q: use one of %s", f.Method, strings.Join(known, ", ")))
	}
	if f.Topic != "" && f.Method != methodPublish && f.Method != methodTestIamPermissions {
		errs = append(errs, fmt.Errorf("topic is only for methods %s and %s", methodPublish, methodTestIamPermissions))
	}
	if (f.Key != "" || f.Attribute != "") && f.Method != methodPublish {
		errs = append(errs, errors.New("key and attribute are only for method Publish"))
	}
	if (f.Kind == KindNoPermission) && f.Method != methodTestIamPermissions {
		errs = append(errs, fmt.Errorf("kind %s is only for method %s", KindNoPermission, methodTestIamPermissions))
	}
	if name, _, ok := strings.Cut(f.Attribute, "="); f.Attribute != "" && (!ok || name == "") {
		errs = append(errs, fmt.Errorf("attribute is %q: use name=value", f.Attribute))
	}
	if ok, _ := path.Match("projects/*/topics/*", f.Topic); f.Topic != "" && !ok {
		errs = append(errs, fmt.Errorf("topic is %q: use the full name, projects/P/topics/T", f.Topic))
	}
	if f.Count < 0 || f.Every < 0 || f.Connection < 0 || f.EveryConnection < 0 {
		errs = append(errs, errors.New("count and every cannot be negative, nor can connections"))
	}
	return errs
}

func (f Fault) grpcCode() (codes.Code, error) {
	var code codes.Code
	err := code.UnmarshalJSON([]byte(strconv.Quote(f.Code)))
	return code, err
}

// knownMethods lists the methods of the services, sorted.
func knownMethods() []string {
	methods := []string{AnyMethod, methodStreamingPull, methodTestIamPermissions}
	for _, m := range append(slices.Clone(pb.Publisher_ServiceDesc.Methods), pb.Subscriber_ServiceDesc.Methods...) {
		methods = append(methods, m.MethodName)
	}
	slices.Sort(methods)
	return methods
}
