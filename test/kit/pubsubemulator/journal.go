package pubsubemulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	// stateFile holds everything that is not a message: administration and acknowledgements.
	stateFile = "state.jsonl"
	// lockFile is held by the running emulator; the kernel lets go of it when the process dies.
	lockFile = "lock"
	// methodAck marks the lines of stateFile that are acknowledgements.
	methodAck = "Acknowledge"
)

// change is a line of stateFile: a call that changed topics or subscriptions, or acknowledgements.
type change struct {
	Seq     int64           `json:"seq"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request,omitempty"`

	Subscription string   `json:"subscription,omitempty"`
	IDs          []string `json:"ids,omitempty"`
}

// journal is what survives a kill: two files whose lines share one sequence. Two, so that the history
// of accepted messages can be read without knowing anything else. The broker's mutex guards it, but
// for syncMessages.
type journal struct {
	messages, state *appendFile
	lock            *os.File
	fsync           bool
	seq             int64
}

// recovered is what the journal says about the past, but for the messages, which can be many and are
// read again while they are replayed.
type recovered struct {
	changes []change
	acked   map[string]map[string]struct{} // subscription, message id
}

// openJournal locks dir, cuts off torn lines and reads the past.
func openJournal(dir string, fsync bool) (*journal, *recovered, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{lock: lock, fsync: fsync}
	past, err := j.open(dir)
	if err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	return j, past, nil
}

func (j *journal) open(dir string) (*recovered, error) {
	past := &recovered{acked: map[string]map[string]struct{}{}}
	statePath, messagesPath := filepath.Join(dir, stateFile), filepath.Join(dir, messagesFile)
	stateEnd, err := eachLine(statePath, func(line []byte) error { return j.readChange(line, past) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(err)
	}
	messagesEnd, last, err := lastMessage(messagesPath)
	if err != nil {
		return nil, damaged(err)
	}
	j.seq = max(j.seq, last.Seq)
	if j.state, err = openAppendFile(statePath, stateEnd); err != nil {
		return nil, err
	}
	j.messages, err = openAppendFile(messagesPath, messagesEnd)
	return past, err
}

func damaged(err error) error {
	return fmt.Errorf("the journal is damaged: %w; repair the line or start with an empty directory", err)
}

func (j *journal) readChange(line []byte, past *recovered) error {
	var c change
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("not a state change: %w", err)
	}
	j.seq = max(j.seq, c.Seq)
	if c.Method != methodAck {
		past.changes = append(past.changes, c)
		return nil
	}
	ids := past.acked[c.Subscription]
	if ids == nil {
		ids = map[string]struct{}{}
		past.acked[c.Subscription] = ids
	}
	for _, id := range c.IDs {
		ids[id] = struct{}{}
	}
	return nil
}

// lockDir refuses a directory that another emulator writes to: two writers would mix their lines and
// give ids twice.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("another emulator uses %s (%w): stop it or choose another directory", dir, err)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// nextSeq gives the next number of the sequence. A number that is not used afterwards is a gap.
func (j *journal) nextSeq() int64 {
	j.seq++
	return j.seq
}

// appendMessages writes the lines of one publish call together and returns the offset to sync to.
func (j *journal) appendMessages(messages []*Message) (int64, error) {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, m := range messages {
		if err := enc.Encode(m); err != nil {
			return 0, err
		}
	}
	if err := j.messages.append(lines.Bytes()); err != nil {
		return 0, err
	}
	return j.messages.end(), nil
}

// syncMessages waits for the disk when the emulator was started with fsync. It must be called without
// the broker's mutex, or callers could not share an fsync.
func (j *journal) syncMessages(offset int64) error {
	if !j.fsync {
		return nil
	}
	return j.messages.sync(offset)
}

// appendChange writes a call that changed topics or subscriptions.
func (j *journal) appendChange(method string, req proto.Message) error {
	body, err := protojson.Marshal(req)
	if err != nil {
		return err
	}
	if err := j.appendState(change{Method: method, Request: body}); err != nil || !j.fsync {
		return err
	}
	return j.state.sync(j.state.end())
}

// appendAck writes acknowledgements. They are never synced: losing one means delivering a message
// again, which subscribers have to expect anyway.
func (j *journal) appendAck(subscription string, ids []string) error {
	return j.appendState(change{Method: methodAck, Subscription: subscription, IDs: ids})
}

func (j *journal) appendState(c change) error {
	c.Seq = j.nextSeq()
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return j.state.append(append(line, '\n'))
}

// poison refuses every further line: the broker holds a change that the journal lacks, and lines that
// build on it could not be replayed.
func (j *journal) poison(cause error) {
	err := fmt.Errorf("the journal is behind the broker, restart the emulator: %w", cause)
	j.messages.broken, j.state.broken = err, err
}

// close lets go of the directory.
func (j *journal) close() error {
	var errs []error
	for _, f := range []*appendFile{j.messages, j.state} {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(append(errs, j.lock.Close())...)
}
