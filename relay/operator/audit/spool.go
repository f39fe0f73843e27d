package audit

import (
	"bufio"
	"bytes"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// record is a message as it is sorted. It has a fixed size: names are numbers.
type record struct {
	id          outbox.ID
	at          int64 // in microseconds since 1970
	seq         int64
	key         uint64 // a sum of the broker's own name; 0: it has none
	topic, kind uint32
	isCopy      bool
}

const recordSize = 16 + 8 + 8 + 4 + 4 + 1 + 8

func (r record) encode(to []byte) {
	copy(to, r.id[:])
	binary.BigEndian.PutUint64(to[16:], uint64(r.at))
	binary.BigEndian.PutUint64(to[24:], uint64(r.seq))
	binary.BigEndian.PutUint32(to[32:], r.topic)
	binary.BigEndian.PutUint32(to[36:], r.kind)
	binary.BigEndian.PutUint64(to[41:], r.key)
	to[40] = 0
	if r.isCopy {
		to[40] = 1
	}
}

func decode(from []byte) (r record) {
	copy(r.id[:], from)
	r.at, r.seq = int64(binary.BigEndian.Uint64(from[16:])), int64(binary.BigEndian.Uint64(from[24:]))
	r.topic, r.kind = binary.BigEndian.Uint32(from[32:]), binary.BigEndian.Uint32(from[36:])
	r.isCopy, r.key = from[40] == 1, binary.BigEndian.Uint64(from[41:])
	return r
}

// before is the order: by id, then by time.
func (r record) before(other record) int {
	if order := bytes.Compare(r.id[:], other.id[:]); order != 0 {
		return order
	}
	return int(min(max(r.at-other.at, -1), 1))
}

// names numbers topics and types. There are few of them; those beyond the bound, which somebody else must have sent,
// have no name.
type names struct {
	numbers map[string]uint32
	texts   []string
}

const mostNames = 100_000

func (n *names) number(text string) uint32 {
	if n.numbers == nil {
		n.numbers, n.texts = map[string]uint32{}, []string{""}
	}
	number, known := n.numbers[text]
	if !known && text != "" && len(n.texts) < mostNames {
		number = uint32(len(n.texts))
		n.numbers[text] = number
		n.texts = append(n.texts, text)
	}
	return number
}

func (n *names) text(number uint32) string {
	if int(number) < len(n.texts) {
		return n.texts[number]
	}
	return ""
}

// spool sorts messages by their ids. So many are kept in memory; each time there are more, they are written to a file
// in order, and the files are read beside each other in the end.
type spool struct {
	most   int
	names  names
	memory []record
	files  []*os.File
}

func (s *spool) add(m Message) error {
	one := record{
		id: m.ID, at: m.At.UnixMicro(), seq: m.Seq, topic: s.names.number(m.Topic), kind: s.names.number(m.Type),
		isCopy: m.Copy,
	}
	if m.Key != "" {
		sum := sha256.Sum256([]byte(m.Topic + "/" + m.Key))
		one.key = binary.BigEndian.Uint64(sum[:]) | 1 // never 0
	}
	s.memory = append(s.memory, one)
	if len(s.memory) < s.most {
		return nil
	}
	return s.write()
}

// write empties the memory into a file that nobody else can see.
func (s *spool) write() error {
	slices.SortFunc(s.memory, record.before)
	file, err := os.CreateTemp("", "outbox-audit-")
	if err != nil {
		return fmt.Errorf("a file for messages: %w", err)
	}
	s.files = append(s.files, file)
	if err := os.Remove(file.Name()); err != nil { // it lives until it is closed
		return fmt.Errorf("a file for messages: %w", err)
	}
	to := bufio.NewWriterSize(file, 1<<16)
	var line [recordSize]byte
	for _, r := range s.memory {
		r.encode(line[:])
		if _, err := to.Write(line[:]); err != nil {
			return fmt.Errorf("write messages to a file: %w", err)
		}
	}
	s.memory = s.memory[:0]
	if err := to.Flush(); err != nil {
		return fmt.Errorf("write messages to a file: %w", err)
	}
	return nil
}

func (s *spool) close() error {
	var problems []error
	for _, file := range s.files {
		problems = append(problems, file.Close())
	}
	return errors.Join(problems...)
}

// sorted begins to read all of them in order. Nothing may be added any more.
func (s *spool) sorted() (*merger, error) {
	slices.SortFunc(s.memory, record.before)
	m := &merger{names: &s.names}
	sources := []func() (record, error){fromMemory(s.memory)}
	for _, file := range s.files {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("read messages from a file: %w", err)
		}
		sources = append(sources, fromFile(file))
	}
	for _, source := range sources {
		if err := m.take(source); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func fromMemory(records []record) func() (record, error) {
	return func() (record, error) {
		if len(records) == 0 {
			return record{}, io.EOF
		}
		first := records[0]
		records = records[1:]
		return first, nil
	}
}

func fromFile(file *os.File) func() (record, error) {
	from := bufio.NewReaderSize(file, 1<<16)
	return func() (record, error) {
		var line [recordSize]byte
		if _, err := io.ReadFull(from, line[:]); err != nil {
			return record{}, err //nolint:wrapcheck // take says what it was
		}
		return decode(line[:]), nil
	}
}

// merger reads several sorted sources in one order.
type merger struct {
	names *names
	heads heads
}

type head struct {
	record record
	next   func() (record, error)
}

type heads []head

func (h *heads) Len() int           { return len(*h) }
func (h *heads) Less(i, j int) bool { return (*h)[i].record.before((*h)[j].record) < 0 }
func (h *heads) Swap(i, j int)      { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push and Pop are for the heap.
func (h *heads) Push(x any) {
	if one, is := x.(head); is {
		*h = append(*h, one)
	}
}

func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// take adds what a source has next, if it has something.
func (m *merger) take(source func() (record, error)) error {
	next, err := source()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read messages from a file: %w", err)
	}
	heap.Push(&m.heads, head{record: next, next: source})
	return nil
}

// peek is the id that comes next.
func (m *merger) peek() (outbox.ID, bool) {
	if len(m.heads) == 0 {
		return outbox.ID{}, false
	}
	return m.heads[0].record.id, true
}

// there is all that the broker has of one event.
type there struct {
	id          outbox.ID
	seq         int64
	topic, kind string
	at          time.Time // of the first
	times       int       // without copies that somebody asked for
	copies      int
	// copiedTo are the topics of such copies; mostTopics of them at most.
	copiedTo []string
}

const mostTopics = 16

// mostKeys is among how many messages of one event one that is shown again is known.
const mostKeys = 1_000

// next is what the broker has of the event that comes next.
func (m *merger) next() (there, error) {
	first := m.heads[0].record
	all := there{
		id: first.id, seq: first.seq, topic: m.names.text(first.topic), kind: m.names.text(first.kind),
		at: time.UnixMicro(first.at).UTC(),
	}
	var keys []uint64
	for len(m.heads) > 0 && m.heads[0].record.id == first.id {
		top, _ := heap.Pop(&m.heads).(head)
		if err := m.take(top.next); err != nil {
			return all, err
		}
		if key := top.record.key; key != 0 {
			if slices.Contains(keys, key) {
				continue
			}
			if len(keys) < mostKeys {
				keys = append(keys, key)
			}
		}
		if topic := m.names.text(top.record.topic); !top.record.isCopy {
			all.times++
		} else if all.copies++; len(all.copiedTo) < mostTopics && !slices.Contains(all.copiedTo, topic) {
			all.copiedTo = append(all.copiedTo, topic)
		}
		if all.seq == 0 {
			all.seq = top.record.seq
		}
	}
	return all, nil
}
