package eventually_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// failing is a test that writes down how it failed.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                           {}
func (f *failing) Fatal(args ...any)                 { f.said = fmt.Sprint(args...) }
func (f *failing) Fatalf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

func TestTrue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		eventually.True(t, "it was looked at often enough", func() bool { looks++; return looks == 5 })
		if looks != 5 || time.Since(began) > time.Second {
			t.Errorf("%d looks within %s", looks, time.Since(began))
		}
		f := &failing{TB: t}
		eventually.True(f, "pigs fly", func() bool { return false }, func() string { return "they stand" })
		took := time.Since(began)
		if took < eventually.Patience || !strings.Contains(f.said, "pigs fly") || !strings.Contains(f.said, "they stand") {
			t.Errorf("after %s it said %q", took, f.said)
		}
	})
}

func TestWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := eventually.Within(ctx, time.Minute, "pigs fly", func() (bool, error) { return false, os.ErrInvalid })
		if !errors.Is(err, os.ErrInvalid) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "pigs fly") {
			t.Errorf("an error that stays: %v", err)
		}
		err = eventually.Within(t.Context(), time.Minute, "", func() (bool, error) { return true, os.ErrInvalid })
		if !errors.Is(err, os.ErrInvalid) {
			t.Errorf("an error that ends it: %v", err)
		}
		tries := 0
		err = eventually.Within(t.Context(), time.Minute, "", func() (bool, error) {
			if tries++; tries < 3 {
				return false, os.ErrInvalid
			}
			return true, nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%d tries, then %v", tries, err)
		}
	})
}

func TestWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := eventually.Works(t.Context(), func() error {
			if tries++; tries < 3 {
				return os.ErrInvalid
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%d tries, then %v", tries, err)
		}
		if err := eventually.Works(t.Context(), func() error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("what never works: %v", err)
		}
	})
}

func TestReceive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := make(chan int, 1)
		said <- 7
		if got := eventually.Receive(t, "a number", said); got != 7 {
			t.Error(got)
		}
		f := &failing{TB: t}
		eventually.Receive(f, "somebody speaks", said)
		if !strings.Contains(f.said, "somebody speaks") {
			t.Error(f.said)
		}
	})
}
