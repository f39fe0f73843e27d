package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneQuestionServesAll who ask meanwhile and shortly after. One that fails, or panics, serves nobody who comes
// later.
func TestOneQuestionServesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l latest[int]
		asked := 0
		read := func(context.Context) (int, error) {
			asked++
			time.Sleep(time.Second) // synctest
			return asked, nil
		}
		answers := make(chan int, 10)
		for range 10 {
			go func() {
				n, err := l.get(t.Context(), "", read)
				if err != nil {
					t.Error(err)
				}
				answers <- n
			}()
		}
		for range 10 {
			if n := <-answers; n != 1 {
				t.Errorf("got the answer %d", n)
			}
		}
		if n, _ := l.get(t.Context(), "", read); n != 1 {
			t.Errorf("a moment later it is %d", n)
		}
		time.Sleep(fresh + time.Millisecond) // synctest
		if n, _ := l.get(t.Context(), "", read); n != 2 {
			t.Errorf("when it is old it is %d", n)
		}
		broken := errors.New("broken")
		_, err := l.get(t.Context(), "bad", func(context.Context) (int, error) { return 0, broken })
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = l.get(t.Context(), "bad", func(context.Context) (int, error) { panic("bad") })
		}()
		if n, err := l.get(t.Context(), "bad", read); n != 3 || err != nil {
			t.Errorf("after a failure it is %d, %v", n, err)
		}
	})
}

// mostCompressed is how large everything may be that a browser loads beside a page, in bytes.
const mostCompressed = 60 << 10

func TestAssetsAreSmall(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for name, file := range assets {
		w := gzip.NewWriter(&out)
		if _, err := w.Write(file.body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := w.Close(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	t.Logf("console_assets files=%d compressed_bytes=%d", len(assets), out.Len())
	if len(assets) < 4 || out.Len() > mostCompressed {
		t.Errorf("%d files have %d bytes compressed, at most %d", len(assets), out.Len(), mostCompressed)
	}
}
