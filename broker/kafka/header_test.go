package kafka

import (
	"encoding/binary"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/publish"
)

// headersOf encodes a message and reads its record back as a client would.
func headersOf(t *testing.T, message *publish.Message) (headers []kgo.RecordHeader, size int) {
	t.Helper()
	b := &batch{records: []*handOver{{message: message, size: sizeOf(message)}}}
	b.encode(7, 3, time.Unix(1_700_000_000, 0), nil)
	var read kmsg.RecordBatch
	if err := read.ReadFrom(b.encoded); err != nil {
		t.Fatal(err)
	}
	var record kmsg.Record
	if err := record.ReadFrom(read.Records); err != nil {
		t.Fatal(err)
	}
	if string(record.Key) != message.Key || string(record.Value) != string(message.Body) {
		t.Errorf("key %q and value %q", record.Key, record.Value)
	}
	for _, header := range record.Headers {
		headers = append(headers, kgo.RecordHeader{Key: header.Key, Value: header.Value})
	}
	return headers, len(b.encoded)
}

func TestAttributesTravelAsHeaders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attributes map[string]string
		headers    []string // that must be there
	}{
		"none":  {map[string]string{}, nil},
		"plain": {map[string]string{"event_id": "1", "ce-mine": "stays", "content-type": "text/plain"}, []string{"ce-mine"}},
		"a CloudEvent": {
			map[string]string{
				"ce-specversion": "1.0", "ce-id": "1", "ce-datacontenttype": "application/json", "event_id": "1",
			},
			[]string{"ce_specversion", "ce_id", "content-type", "event_id"},
		},
		"any bytes": {map[string]string{"a": "\x00\xff\r\n", "": "no name", "b": ""}, []string{"a", "b"}},
		"long":      {map[string]string{"a": strings.Repeat("x", 70_000)}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := &publish.Message{Key: "order/o-1", Body: []byte(`{}`), Attributes: c.attributes}
			headers, size := headersOf(t, message)
			if got := Attributes(headers); !maps.Equal(got, c.attributes) {
				t.Errorf("got %q", got)
			}
			for _, name := range c.headers {
				found := false
				for _, header := range headers {
					found = found || header.Key == name
				}
				if !found {
					t.Errorf("there is no header %s among %v", name, headers)
				}
			}
			if want := MessageSize(message); size != want {
				t.Errorf("the batch has %d bytes, MessageSize says %d", size, want)
			}
		})
	}
}

// TestVarintLen: the length of a number is that which the standard library writes.
func TestVarintLen(t *testing.T) {
	t.Parallel()
	for _, number := range []int{0, 1, 62, 63, 64, 65, 8191, 8192, 1 << 20, 1<<20 - 1, 1<<31 - 1} {
		if want := len(binary.AppendVarint(nil, int64(number))); varintLen(number) != want {
			t.Errorf("%d has %d bytes, want %d", number, varintLen(number), want)
		}
	}
}

// TestBatchOfMany: the sizes of records at every place add up.
func TestBatchOfMany(t *testing.T) {
	t.Parallel()
	compressor, err := kgo.DefaultCompressor(kgo.SnappyCompression())
	if err != nil {
		t.Fatal(err)
	}
	for _, with := range []kgo.Compressor{nil, compressor} {
		b, want := &batch{sequence: 5}, batchOverhead
		for place := range 300 {
			message := &publish.Message{
				Key: "k", Body: []byte(strings.Repeat("y", place)), Attributes: map[string]string{"n": "v"},
			}
			h := &handOver{message: message, size: sizeOf(message)}
			b.records = append(b.records, h)
			want += recordLen(h.size, place)
		}
		b.encode(7, 3, time.Unix(1_700_000_000, 0), with)
		if with == nil && len(b.encoded) != want {
			t.Errorf("%d bytes, want %d", len(b.encoded), want)
		}
		if with != nil && len(b.encoded) > want/2 {
			t.Errorf("%d bytes of %d: it is not compressed", len(b.encoded), want)
		}
		var read kmsg.RecordBatch
		if err := read.ReadFrom(b.encoded); err != nil {
			t.Fatal(err)
		}
		if read.NumRecords != 300 || read.LastOffsetDelta != 299 || read.ProducerID != 7 || read.ProducerEpoch != 3 ||
			read.FirstSequence != 5 || int(read.Length) != len(b.encoded)-12 {
			t.Errorf("the batch says %+v", read)
		}
	}
}
