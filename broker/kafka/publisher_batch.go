package kafka

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/posthaste-dev/posthaste/publish"
)

const (
	// batchOverhead is what a batch has beside its records.
	batchOverhead = 61
	// maxBatchBytes is what a batch has at most, unless it is a single message: a broker handles one at a time.
	maxBatchBytes = 1 << 20
	// maxBatchRecords keeps a batch that is refused from being many.
	maxBatchRecords = 10_000
)

// batch is a run of messages for one partition under one number of the producer's. What it is made of never changes: a
// broker knows it again by its number, and takes it once.
type batch struct {
	records  []*handOver
	encoded  []byte
	sequence int32
	unsure   bool // a broker may have it
}

// sizeOf is what a broker counts of a message's record, but for the place in its batch.
func sizeOf(message *publish.Message) int {
	_, isCloudEvent := message.Attributes[cloudEventVersion]
	size := 2 + // attributes, and the time as distance from the batch's
		sizeOfText(len(message.Key)) + sizeOfText(len(message.Body)) + varintLen(len(message.Attributes))
	for name, value := range message.Attributes {
		size += sizeOfText(len(headerName(name, isCloudEvent))) + sizeOfText(len(value))
	}
	return size
}

// MessageSize is what a broker counts of a message that is alone in its batch and not compressed.
func MessageSize(message *publish.Message) int { return batchOverhead + recordLen(sizeOf(message), 0) }

func sizeOfText(length int) int { return varintLen(length) + length }

// recordLen is a record's length in a batch, at this place.
func recordLen(size, place int) int {
	size += varintLen(place)
	return varintLen(size) + size
}

// varintLen is the length of a number that is not negative, as Kafka writes those of records: zigzag, seven bits a
// byte.
func varintLen(number int) int { return (bits.Len(uint(number)<<1|1) + 6) / 7 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode writes the batch in the format that Kafka has had since 0.11.
func (b *batch) encode(producer int64, epoch int16, at time.Time, compressor kgo.Compressor) {
	records := b.appendRecords(nil)
	codec := kgo.CodecNone
	if compressor != nil {
		if compressed, with := compressor.Compress(new(bytes.Buffer), records); compressed != nil &&
			len(compressed) < len(records) {
			records, codec = compressed, with
		}
	}
	millis := uint64(at.UnixMilli())
	text := make([]byte, 0, batchOverhead+len(records))
	text = binary.BigEndian.AppendUint64(text, 0)                                     // the offset, which the broker gives
	text = binary.BigEndian.AppendUint32(text, uint32(batchOverhead-12+len(records))) // of what follows
	text = binary.BigEndian.AppendUint32(text, math.MaxUint32)                        // the leader's epoch
	text = append(text, 2)                                                            // the format
	text = binary.BigEndian.AppendUint32(text, 0)                                     // the sum, below
	text = binary.BigEndian.AppendUint16(text, uint16(codec))                         // and no transaction
	text = binary.BigEndian.AppendUint32(text, uint32(len(b.records)-1))              // the place of the last
	text = binary.BigEndian.AppendUint64(text, millis)                                // of the first
	text = binary.BigEndian.AppendUint64(text, millis)                                // of the last
	text = binary.BigEndian.AppendUint64(text, uint64(producer))
	text = binary.BigEndian.AppendUint16(text, uint16(epoch))
	text = binary.BigEndian.AppendUint32(text, uint32(b.sequence))
	text = binary.BigEndian.AppendUint32(text, uint32(len(b.records)))
	text = append(text, records...)
	binary.BigEndian.PutUint32(text[17:], crc32.Checksum(text[21:], castagnoli))
	b.encoded = text
}

func (b *batch) appendRecords(text []byte) []byte {
	total := 0
	for place, h := range b.records {
		total += recordLen(h.size, place)
	}
	if cap(text) < total {
		text = make([]byte, 0, total)
	}
	for place, h := range b.records {
		message := h.message
		_, isCloudEvent := message.Attributes[cloudEventVersion]
		text = binary.AppendVarint(text, int64(h.size+varintLen(place)))
		text = append(text, 0, 0)
		text = binary.AppendVarint(text, int64(place))
		text = appendText(text, message.Key)
		text = appendText(text, message.Body)
		text = binary.AppendVarint(text, int64(len(message.Attributes)))
		for name, value := range message.Attributes {
			text = appendText(text, headerName(name, isCloudEvent))
			text = appendText(text, value)
		}
	}
	return text
}

func appendText[T string | []byte](text []byte, value T) []byte {
	return append(binary.AppendVarint(text, int64(len(value))), value...)
}

// tooLarge refuses a message that is above the limit, whoever has set it.
func tooLarge(size, limit int) error {
	return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: fmt.Errorf(
		"kafka: the message has %d bytes with its key and headers, and the limit is %d: see max.message.bytes of the topic "+
			"and MaxMessageBytes", size, limit)}
}
