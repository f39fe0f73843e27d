package drain

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/posthaste-dev/posthaste/outbox"
)

// An Arrival is one event at a publisher.
type Arrival struct {
	Seq     int64 // the version within the aggregate as well: numbers rise with them
	At      int64 // unix nanoseconds
	ID      outbox.ID
	Account int32
	Process int // which journal it is from; not written
}

const arrivalBytes = 40

// A Journal is a file of arrivals that is written through memory shared with the kernel: an arrival costs
// no system call, and what was written survives a kill -9 of the process, not one of the machine.
type Journal struct {
	file   *os.File
	memory []byte
	next   *atomic.Int64 // in the memory, so that others can watch it
}

// OpenJournal makes or opens a journal with room for this many arrivals.
func OpenJournal(path string, room int) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("drain: journal: %w", err)
	}
	size := 8 + room*arrivalBytes
	if err := file.Truncate(int64(size)); err != nil {
		return nil, errors.Join(fmt.Errorf("drain: journal: %w", err), file.Close())
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("drain: journal: %w", err), file.Close())
	}
	return &Journal{file: file, memory: memory, next: (*atomic.Int64)(unsafe.Pointer(&memory[0]))}, nil
}

// Close gives the memory back. What was written stays in the file.
func (j *Journal) Close() error {
	return errors.Join(syscall.Munmap(j.memory), j.file.Close())
}

// Len is how many arrivals there are, those half-written included.
func (j *Journal) Len() int { return int(j.next.Load()) }

// Write appends an arrival that happens now. It is an error when the journal is full.
func (j *Journal) Write(seq int64, id outbox.ID, account int) error {
	at := 8 + int(j.next.Add(1)-1)*arrivalBytes
	if at+arrivalBytes > len(j.memory) {
		return errors.New("drain: the journal is full: events arrive again and again")
	}
	record := j.memory[at : at+arrivalBytes]
	binary.LittleEndian.PutUint64(record, uint64(seq))
	copy(record[16:], id[:])
	binary.LittleEndian.PutUint32(record[32:], uint32(account))
	// The time comes last: a record without one was cut off by a kill.
	binary.LittleEndian.PutUint64(record[8:], uint64(time.Now().UnixNano()))
	return nil
}

// Arrivals reads what is complete.
func (j *Journal) Arrivals(process int) []Arrival {
	all := make([]Arrival, 0, j.Len())
	for i := range min(j.Len(), (len(j.memory)-8)/arrivalBytes) {
		record := j.memory[8+i*arrivalBytes:]
		one := Arrival{
			Seq: int64(binary.LittleEndian.Uint64(record)), At: int64(binary.LittleEndian.Uint64(record[8:])),
			Account: int32(binary.LittleEndian.Uint32(record[32:])), Process: process,
		}
		copy(one.ID[:], record[16:32])
		if one.At != 0 {
			all = append(all, one)
		}
	}
	return all
}

// Expected is an event as the table has it.
type Expected struct {
	ID      outbox.ID
	Account int32
}

// A Verdict is what became of the events of one run.
type Verdict struct {
	Events, Lost, Duplicates, Disorder, Strange int
}

// Assess compares what arrived, at any number of processes, with what was there to arrive, by number. An
// event is out of order when it first arrived before a lower number of its aggregate did.
func Assess(expected map[int64]Expected, arrivals []Arrival) Verdict {
	verdict := Verdict{Events: len(expected)}
	arrivals = slices.Clone(arrivals)
	slices.SortFunc(arrivals, func(a, b Arrival) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Seq, b.Seq)) })
	seen := make(map[int64]bool, len(expected))
	highest := map[int32]int64{}
	for _, a := range arrivals {
		event, known := expected[a.Seq]
		switch {
		case !known || event.ID != a.ID || event.Account != a.Account:
			verdict.Strange++
		case seen[a.Seq]:
			verdict.Duplicates++
		default:
			seen[a.Seq] = true
			if highest[a.Account] > a.Seq {
				verdict.Disorder++
			}
			highest[a.Account] = max(highest[a.Account], a.Seq)
		}
	}
	verdict.Lost = len(expected) - len(seen)
	return verdict
}
