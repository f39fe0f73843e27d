package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// curedFolder has a file for every event that no longer fails.
const curedFolder = "cured"

// fateful is the broker's publisher, with the events' fates in front of it.
type fateful struct {
	inner  publish.Publisher
	folder string

	mu    sync.Mutex
	tries map[outbox.ID]int
}

var (
	errForNow  = errors.New("refused for now, for the proof")
	errForGood = errors.New("refused for good, for the proof")
)

// rejections is how often one relay is refused a slow event.
const rejections = 2

// Publish takes its time with every event, so that whoever dies finds some in flight.
func (f *fateful) Publish(ctx context.Context, message *publish.Message) error {
	switch f.disposition(message) {
	case terminal:
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errForGood}
	case stubborn:
		return &publish.RejectedError{Err: errForNow}
	case slow:
		f.mu.Lock()
		f.tries[message.ID]++
		try := f.tries[message.ID]
		f.mu.Unlock()
		if try <= rejections {
			return &publish.RejectedError{Err: errForNow}
		}
	case poison:
		return f.die(message.ID)
	case fine:
	}
	wait := time.NewTimer(time.Duration(message.ID[15]%8) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return f.inner.Publish(ctx, message)
}

// die is what poison does.
func (f *fateful) die(id outbox.ID) error {
	file, err := os.OpenFile(filepath.Join(f.folder, deathsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, id)
	}
	self, found := os.FindProcess(os.Getpid())
	if err = errors.Join(err, found); err == nil {
		err = self.Kill()
	}
	return err
}

// deathsFile has a line for every death by poison.
const deathsFile = "deaths"

// fate reads the event's fate, unless it was cured.
func (f *fateful) disposition(message *publish.Message) disposition {
	if !bytes.Contains(message.Body, []byte(`"fate":`)) {
		return fine
	}
	if _, err := os.Stat(filepath.Join(f.folder, curedFolder, message.ID.String())); err == nil {
		return fine
	}
	var envelope struct {
		Data body `json:"data"`
	}
	if err := json.Unmarshal(message.Body, &envelope); err != nil {
		return fine
	}
	return envelope.Data.Disposition
}
