package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// The names of files in the run's folder by which the proof speaks to the publishers of all relays.
const (
	curedFolder   = "cured"   // a file per event that is cured
	outagesFolder = "outages" // a file per topic that is out of order
	awayFile      = "away"    // the broker is away: nobody speaks for it
)

// hostile is the broker's publisher, with failures in front of it.
type hostile struct {
	inner    publish.Publisher
	folder   string
	name     string
	lostAcks uint64 // of 1000
	faults   *check.Writer

	mu    sync.Mutex
	tries map[outbox.ID]int
}

// newHostile puts failures in front of a publisher. What is in front of a pipeliner is one.
func newHostile(inner publish.Publisher, process RelayProcess, faults *check.Writer) publish.Publisher {
	h := &hostile{
		inner: inner, folder: process.Folder, name: process.Name, lostAcks: uint64(process.LostAcks), faults: faults,
		tries: map[outbox.ID]int{},
	}
	if pipeliner, is := inner.(publish.Pipeliner); is {
		return &hostilePipeliner{hostile: h, inner: pipeliner, lines: map[string]*hostileLine{}}
	}
	return h
}

var (
	errForNow  = errors.New("refused for now, for the proof")
	errForGood = errors.New("refused for good, for the proof")
	errOutage  = errors.New("the topic is out of order, for the proof")
	errNoAck   = errors.New("the acknowledgement got lost, for the proof")
)

// Publish fails by a hash of the event, the relay's name and the try, so that a rerun of a try decides the
// same and every event passes in the end.
func (h *hostile) Publish(ctx context.Context, message *publish.Message) error {
	chance := h.chance(message.ID)
	if err := h.failure(message, chance); err != nil {
		return err
	}
	// A broker that takes its time, before it accepts and then to say so: a kill finds something in either state.
	if err := wait.For(ctx, time.Duration(chance%15)*time.Millisecond); err != nil {
		return err
	}
	if err := h.inner.Publish(ctx, message); err != nil {
		return err
	}
	if err := wait.For(ctx, late(chance)); err != nil {
		return err
	}
	return h.loseAck(message.ID, chance)
}

// failure is why a message is not even sent.
func (h *hostile) failure(message *publish.Message, chance uint64) error {
	if exists(filepath.Join(h.folder, awayFile)) {
		return nil
	}
	if exists(filepath.Join(h.folder, outagesFolder, message.Topic)) {
		return &publish.TopicError{Err: errOutage, RetryAfter: 200 * time.Millisecond}
	}
	switch h.lastingFailure(message) {
	case Terminal:
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errForGood}
	case Stubborn:
		return &publish.RejectedError{Err: errForNow}
	}
	if chance%1000 < 50 {
		return &publish.RejectedError{Err: errForNow}
	}
	return nil
}

// late is how long an acknowledgement takes.
func late(chance uint64) time.Duration { return time.Duration(chance/15%40) * time.Millisecond }

// loseAck forgets some acknowledgements, and writes that down.
func (h *hostile) loseAck(id outbox.ID, chance uint64) error {
	if chance/1000%1000 >= h.lostAcks {
		return nil
	}
	now := time.Now().UnixMicro()
	if err := h.faults.Add(check.Record{Fault: &check.Fault{Kind: check.AckLost, ID: id, From: now, To: now}}); err !=
		nil {
		return err
	}
	return errNoAck
}

// lastingFailure is the failure that the event itself asks for, unless it was cured.
func (h *hostile) lastingFailure(message *publish.Message) Failure {
	if !bytes.Contains(message.Body, []byte(`"failure":`)) ||
		exists(filepath.Join(h.folder, curedFolder, message.ID.String())) {
		return ""
	}
	var envelope struct {
		Data Body `json:"data"`
	}
	if err := json.Unmarshal(message.Body, &envelope); err != nil {
		return ""
	}
	return envelope.Data.Failure
}

// chance is a number that looks random and is the same for the same try.
func (h *hostile) chance(id outbox.ID) uint64 {
	h.mu.Lock()
	h.tries[id]++
	try := h.tries[id]
	h.mu.Unlock()
	hash := fnv.New64a()
	_, _ = hash.Write(id[:]) // a hash takes everything
	_, _ = hash.Write([]byte(strings.Join([]string{h.name, string(rune('a' + try))}, "/")))
	return mix(hash.Sum64())
}

// mix spreads the last bytes over all bits, which FNV alone does not.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
