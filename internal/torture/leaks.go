package torture

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"time"
)

// leaked begins a line of a relay's log about a goroutine that is left when the relay has ended.
const leaked = "leaked goroutine: "

// others are goroutines that are not the relay's: the process's own, and what clients of brokers never end.
var others = [][]byte{
	[]byte("torture.reportLeaks"), []byte("os/signal.loop"), []byte("os/signal.NotifyContext"),
	[]byte("torture.RunRelay.func"),
	[]byte("go.opencensus.io/stats/view.(*worker).start"), []byte("runtime.ensureSigM"),
}

// patienceWithLeaks is how long goroutines may take that are about to end.
const patienceWithLeaks = time.Minute

// reportLeaks waits for goroutines that are about to end and writes down the others, one per line.
func reportLeaks(to io.Writer) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var left [][]byte
	for began := time.Now(); time.Since(began) < patienceWithLeaks; <-look.C {
		if left = strangers(); len(left) == 0 {
			return
		}
	}
	for _, goroutine := range left {
		// it is the log itself
		_, _ = fmt.Fprintf(to, "%s%s\n", leaked, bytes.ReplaceAll(goroutine, []byte("\n"), []byte(" | ")))
	}
}

func strangers() [][]byte {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left [][]byte
next:
	for goroutine := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		for _, known := range others {
			if bytes.Contains(goroutine, known) {
				continue next
			}
		}
		left = append(left, goroutine)
	}
	return left
}
