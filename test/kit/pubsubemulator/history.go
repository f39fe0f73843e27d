package pubsubemulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// messagesFile is the history of accepted messages, one JSON object a line.
const messagesFile = "messages.jsonl"

// Message is one message that the emulator accepted: a line of messages.jsonl.
type Message struct {
	// Seq orders the lines of both journal files among each other; it grows without repeating,
	// across restarts too, but has gaps in this file.
	Seq int64 `json:"seq"`
	// ID is the message id that publisher and subscribers see.
	ID string `json:"id"`
	// Topic is the full name, projects/P/topics/T.
	Topic string `json:"topic"`
	// PublishTime is when the emulator accepted the message.
	PublishTime time.Time `json:"publish_time"`
	// OrderingKey is empty when the publisher set none.
	OrderingKey string `json:"ordering_key,omitempty"`
	// Attributes are the publisher's.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Data is the payload, base64 in the file.
	Data []byte `json:"data"`
}

// ReadMessages returns the accepted messages that an emulator journalled in dir, oldest first. It can
// be called while the emulator runs; a line that is still being written is left out. A directory
// without a journal has no messages.
func ReadMessages(dir string) ([]Message, error) {
	var messages []Message
	_, err := eachMessage(filepath.Join(dir, messagesFile), func(m *Message) error {
		messages = append(messages, *m)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return messages, err
}

// eachMessage calls visit for every whole line and returns the offset behind the last of them.
func eachMessage(path string, visit func(*Message) error) (int64, error) {
	return eachLine(path, func(line []byte) error {
		m, err := parseMessage(line)
		if err != nil {
			return err
		}
		return visit(m)
	})
}

// lastMessage returns the last message of the file and the offset behind it, without the cost of
// parsing the others. It is the zero Message when there is none.
func lastMessage(path string) (int64, *Message, error) {
	var last []byte
	end, err := eachLine(path, func(line []byte) error {
		last = line
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || (err == nil && last == nil) {
		return 0, &Message{}, nil
	}
	if err != nil {
		return 0, nil, err
	}
	m, err := parseMessage(last)
	return end, m, err
}

func parseMessage(line []byte) (*Message, error) {
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("not an accepted message: %w", err)
	}
	return &m, nil
}
