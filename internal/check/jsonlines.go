package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxLine is the longest line that is read: a transaction of 1,000 events with long names.
const maxLine = 4 << 20

// Writer writes records as JSON lines, each with one Write, so that a kill of the process cuts the last
// line at most. A process that starts again must begin a new file.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewWriter returns a writer to out, which should not be buffered. It may be used by many goroutines.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Add writes one record.
func (w *Writer) Add(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("check: encoding a record: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("check: writing a record: %w", err)
	}
	return nil
}

// Read adds all records of a file. A last line that was cut is counted as torn and otherwise ignored: what
// it said is missing, and the verdict shows what follows from that. Any other line that cannot be read is
// counted as malformed. The error is that of the reader.
func (c *Checker) Read(file io.Reader) error {
	return eachLine(file, func(number int, line []byte, whole bool) {
		var r Record
		err := decode(line, &r)
		switch {
		case err == nil:
			c.Add(r)
		case !whole:
			c.tornLine()
		default:
			c.badLine(number, err)
		}
	})
}

// ReadHistory reads a file into memory. It is an error what Checker.Read would count as malformed.
func ReadHistory(file io.Reader) (History, error) {
	var history History
	var problems []error
	err := eachLine(file, func(number int, line []byte, whole bool) {
		var r Record
		if err := decode(line, &r); err == nil {
			history = append(history, r)
		} else if whole {
			problems = append(problems, fmt.Errorf("check: line %d: %w", number, err))
		}
	})
	return history, errors.Join(append(problems, err)...)
}

// Write writes the history as JSON lines.
func (h History) Write(out io.Writer) error {
	w := NewWriter(out)
	for _, r := range h {
		if err := w.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// eachLine calls take with every line that is not empty, and whether a line break ended it.
func eachLine(file io.Reader, take func(number int, line []byte, whole bool)) error {
	lines := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, whole, err := readLine(lines)
		if len(line) > 0 {
			take(number, line, whole)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("check: reading line %d: %w", number, err)
		}
	}
}

// readLine returns one line without its break, and its beginning only if it is longer than any record.
func readLine(lines *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		whole = bytes.HasSuffix(part, []byte("\n"))
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), whole, err
		}
	}
}

// decode reads a line strictly: a field that nobody knows is a history of another version.
func decode(line []byte, r *Record) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	if d.More() {
		return errors.New("there is something behind the record")
	}
	return nil
}

func (c *Checker) tornLine() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdict.counts[Torn]++
}

func (c *Checker) badLine(number int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.malformedf("line %d: %v", number, err)
}
