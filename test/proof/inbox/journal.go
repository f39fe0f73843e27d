package inbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// A line is something that a process saw itself do, written down before it did anything else.
type line struct {
	At    time.Time `json:"at"`
	What  what      `json:"what"`
	Event outbox.ID `json:"event"`
	// Of a verdict:
	Outcome consumer.Outcome `json:"outcome,omitempty"`
	Took    time.Duration    `json:"took,omitempty"`
	Attempt int              `json:"attempt,omitempty"`
}

type what string

const (
	held     what = "held"     // Redis has said that the event is this delivery's
	marked   what = "marked"   // Redis has said that the event is marked as handled
	rejected what = "rejected" // Redis has said that it is not, because another has it
	verdict  what = "verdict"  // the consumer has said what is to become of a message
)

// journal is the file of one process. What is written stays when the process is killed.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func (j *journal) write(l line) {
	l.At = time.Now()
	text, err := json.Marshal(l)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		_, err = j.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("inbox proof: a journal that is not written makes the checker wrong: %v", err))
	}
}

// observe writes the verdicts down.
func (j *journal) observe(_ context.Context, o consumer.Observation) {
	j.write(line{What: verdict, Event: o.Event.ID, Outcome: o.Outcome, Took: o.Took, Attempt: o.Event.Attempt})
}

// readJournal reads what a process has written. One that was killed soon may have written nothing, and its last line
// may be torn.
func readJournal(file string) (lines []line, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inbox proof: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("inbox proof: %s: %w", file, err)
		}
		lines = append(lines, l)
	}
	return lines, scanner.Err()
}

// heldBy are the events that a process has in hand, if these lines are all.
func heldBy(lines []line) (holds []outbox.ID) {
	for _, l := range lines {
		holds = slices.DeleteFunc(holds, func(id outbox.ID) bool { return id == l.Event })
		if l.What == held {
			holds = append(holds, l.Event)
		}
	}
	return holds
}

// overhears writes down what Redis answers to the guard. It stands in the client, so that it is as near to the answer
// as can be.
type overhears struct{ journal *journal }

// DialHook does nothing.
func (overhears) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook does nothing: the guard has no pipelines.
func (overhears) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook reads the answers.
func (o overhears) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil {
			return err
		}
		event, mark := marking(cmd)
		switch {
		case mark == "":
		case taken(cmd):
			o.journal.write(line{What: mark, Event: event})
		case mark == marked:
			o.journal.write(line{What: rejected, Event: event})
		}
		return nil
	}
}

// marking finds out which event a command holds or marks. The mark that shall be there comes last of those it names.
func marking(cmd redis.Cmder) (event outbox.ID, mark what) {
	for _, arg := range cmd.Args() {
		text, _ := arg.(string)
		switch {
		case strings.Contains(text, ":evt:processed:"):
			event, _ = outbox.ParseID(text[max(0, len(text)-36):])
		case strings.HasPrefix(text, "held:"):
			mark = held
		case strings.HasPrefix(text, "done:"), strings.HasPrefix(text, "marked:"):
			mark = marked
		}
	}
	return event, mark
}

// taken tells whether Redis has taken the mark: a script answers what is there instead.
func taken(cmd redis.Cmder) bool {
	switch cmd := cmd.(type) {
	case *redis.BoolCmd:
		return cmd.Val()
	case *redis.Cmd:
		answer, err := cmd.Slice()
		return err == nil && len(answer) == 2 && answer[0] == ""
	}
	return false
}
