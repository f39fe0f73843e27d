package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ReadConfig says what of a stream is read.
type ReadConfig struct {
	// Stream is its name. Empty: the one that has the first subject.
	Stream string
	// Subjects are those that are read. Empty: all.
	Subjects []string
	// From is when the first message was stored that is read. Zero: the first that there is.
	From time.Time
}

// Stored is a message of a stream without its body.
type Stored struct {
	Sequence   uint64
	At         time.Time
	Subject    string
	Attributes map[string]string
}

// ErrTakenAway is that of a stream that keeps a message only until it is consumed: what it holds says nothing about
// what it was given.
var ErrTakenAway = errors.New("the stream keeps messages only until they are consumed")

// A Reader reads what a stream holds, beside its consumers and without their notice.
type Reader struct {
	stream   jetstream.Stream
	settings jetstream.ConsumerConfig
	info     *jetstream.StreamInfo
	pending  uint64
}

// NewReader looks at the stream and prepares to read it.
func NewReader(ctx context.Context, conn *nats.Conn, config ReadConfig) (*Reader, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("natsjetstream: %w", err)
	}
	name := config.Stream
	if name == "" && len(config.Subjects) > 0 {
		if name, err = js.StreamNameBySubject(ctx, config.Subjects[0]); err != nil {
			return nil, fmt.Errorf("natsjetstream: the stream of %s: %w", config.Subjects[0], err)
		}
	}
	r := &Reader{}
	if r.stream, err = js.Stream(ctx, name); err == nil {
		r.info, err = r.stream.Info(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("natsjetstream: the stream %s: %w", name, err)
	}
	if r.info.Config.Retention != jetstream.LimitsPolicy {
		return nil, fmt.Errorf("natsjetstream: the stream %s: %w", name, ErrTakenAway)
	}
	r.settings = jetstream.ConsumerConfig{
		FilterSubjects: config.Subjects, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true,
		InactiveThreshold: forgottenAfter,
	}
	if !config.From.IsZero() {
		r.settings.DeliverPolicy, r.settings.OptStartTime = jetstream.DeliverByStartTimePolicy, &config.From
	}
	// One to count, since nobody knows how long it takes until they are read.
	counter, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	r.pending = counter.CachedInfo().NumPending
	return r, r.end(ctx, counter)
}

func (r *Reader) begin(ctx context.Context) (jetstream.Consumer, error) {
	consumer, err := r.stream.CreateConsumer(ctx, r.settings)
	if err != nil {
		return nil, fmt.Errorf("natsjetstream: read the stream %s: %w", r.info.Config.Name, err)
	}
	return consumer, nil
}

func (r *Reader) end(ctx context.Context, consumer jetstream.Consumer) error {
	if err := r.stream.DeleteConsumer(ctx, consumer.CachedInfo().Name); err != nil {
		return fmt.Errorf("natsjetstream: end reading the stream %s: %w", r.info.Config.Name, err)
	}
	return nil
}

// forgottenAfter is when the server forgets a reader that does not read.
const forgottenAfter = time.Minute

// Messages is how many there were to read when the reader was made.
func (r *Reader) Messages() uint64 { return r.pending }

// Since is from when on the stream must hold everything that it was given, by its limits as they are: what is older may
// have gone by them. What they do not explain somebody took away, and it is missing. Zero: from its beginning on. When
// Each has ended it is as of then, and what the stream let go of meanwhile is older.
func (r *Reader) Since() (since time.Time) {
	state, limits := r.info.State, r.info.Config
	if state.FirstSeq <= max(1, limits.FirstSeq) {
		return time.Time{}
	}
	if limits.MaxAge > 0 {
		since = r.info.TimeStamp.Add(-limits.MaxAge)
	}
	if state.Msgs > 0 && full(state, limits) && state.FirstTime.After(since) {
		since = state.FirstTime
	}
	return since
}

// full tells whether a stream may have let go of messages to make room for others. One that has room for as much as it
// holds was emptied, unless a message is as large as all of that, or some were deleted since. How many messages it has
// for each subject nobody knows here.
func full(state jetstream.StreamState, limits jetstream.StreamConfig) bool {
	if limits.MaxMsgsPerSubject > 0 {
		return true
	}
	if limits.Discard != jetstream.DiscardOld {
		return false
	}
	return limits.MaxMsgs > 0 && 2*state.Msgs >= uint64(limits.MaxMsgs) ||
		limits.MaxBytes > 0 && 2*state.Bytes >= uint64(limits.MaxBytes)
}

// Deleted is how many messages the stream has let go of behind its first one: somebody deleted them, or it keeps only
// so many for each subject.
func (r *Reader) Deleted() int { return r.info.State.NumDeleted }

// readBatch is how much is read at a time.
const readBatch = 2_000

// Each hands over what the stream holds, in its order, up to what it held when this was called. It ends at the first
// error of each.
func (r *Reader) Each(ctx context.Context, each func(Stored) error) (err error) {
	consumer, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgottenAfter)
		defer cancel()
		err = errors.Join(err, r.end(ending, consumer))
	}()
	info, err := r.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("natsjetstream: read the stream: %w", err)
	}
	if err := readAll(ctx, consumer, info.State.LastSeq, each); err != nil {
		return err
	}
	// What went while it was read was not seen: only now it is known from when on all was.
	if info, err = r.stream.Info(ctx); err != nil {
		return fmt.Errorf("natsjetstream: read the stream: %w", err)
	}
	r.info = info
	return nil
}

func readAll(ctx context.Context, consumer jetstream.Consumer, last uint64, each func(Stored) error) error {
	at := &position{last: last}
	for at.stored < at.last {
		batch, err := consumer.FetchNoWait(readBatch)
		if err = errors.Join(ctx.Err(), err); err != nil {
			return fmt.Errorf("natsjetstream: read the stream: %w", err)
		}
		before := at.read
		if err := at.take(batch, each); err != nil {
			return err
		}
		if at.read == before {
			return allRead(ctx, consumer, at.read)
		}
	}
	return nil
}

// position is how far a stream is read: how many messages, the number of the last in the stream, and the one to end at.
type position struct{ read, stored, last uint64 }

// take hands over a batch. What is behind the end is left out.
func (p *position) take(batch jetstream.MessageBatch, each func(Stored) error) error {
	for message := range batch.Messages() {
		stored, number, err := storedOf(message)
		if err != nil {
			return err
		}
		if p.read++; number != p.read {
			return fmt.Errorf("natsjetstream: read the stream: messages %d to %d did not arrive; read again", p.read, number-1)
		}
		if p.stored = stored.Sequence; p.stored > p.last {
			continue
		}
		if err := each(stored); err != nil {
			return err
		}
	}
	if err := batch.Error(); err != nil {
		return fmt.Errorf("natsjetstream: read the stream: %w", err)
	}
	return nil
}

// allRead fails where something is left although nothing comes.
func allRead(ctx context.Context, consumer jetstream.Consumer, read uint64) error {
	info, err := consumer.Info(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("natsjetstream: read the stream: %w", err)
	case info.NumPending > 0 || info.Delivered.Consumer != read:
		return fmt.Errorf("natsjetstream: read the stream: %d messages are left after %d, and none comes; read again",
			info.NumPending+info.Delivered.Consumer-read, read)
	default:
		return nil
	}
}

// storedOf is a message and its number among those that this reader was sent.
func storedOf(message jetstream.Msg) (Stored, uint64, error) {
	meta, err := message.Metadata()
	if err != nil {
		return Stored{}, 0, fmt.Errorf("natsjetstream: a message of the stream: %w", err)
	}
	return Stored{
		Sequence: meta.Sequence.Stream, At: meta.Timestamp, Subject: message.Subject(),
		Attributes: Attributes(message.Headers()),
	}, meta.Sequence.Consumer, nil
}
