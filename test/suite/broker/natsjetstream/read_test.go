package natsjetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// TestAReaderShowsWhatAStreamHolds: more than one batch, of the subjects that are asked for, up to what was there when
// it began, and what the stream has let go of.
func TestAReaderShowsWhatAStreamHolds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	conn, err := natsjetstream.Connect(services.NATS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	name := "read-" + strings.ToLower(rand.Text()[:12])
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = js.DeleteStream(context.Background(), name) }()
	send := func(subject string, from, to int) {
		t.Helper()
		sendNumbers(ctx, t, js, name+"."+subject, from, to)
	}
	read := func(config natsjetstream.ReadConfig, meanwhile func(int)) (*natsjetstream.Reader, []string) {
		t.Helper()
		config.Stream = name
		reader, err := natsjetstream.NewReader(ctx, conn, config)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = reader.Each(ctx, func(stored natsjetstream.Stored) error {
			got = append(got, stored.Attributes["n"])
			meanwhile(len(got))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return reader, got
	}
	none := func(int) {}
	if reader, got := read(natsjetstream.ReadConfig{}, none); len(got) != 0 || !reader.Since().IsZero() {
		t.Errorf("an empty stream: %v since %s", got, reader.Since())
	}
	send("a", 1, 4500)
	send("b", 4501, 4510)
	reader, got := read(natsjetstream.ReadConfig{}, func(n int) {
		if n == 100 {
			send("a", 4511, 4520)
		}
	})
	if len(got) != 4510 || got[0] != "1" || got[4509] != "4510" || reader.Messages() != 4510 || !reader.Since().IsZero() {
		t.Errorf("%d messages, %d expected", len(got), reader.Messages())
	}
	ofB := natsjetstream.ReadConfig{Subjects: []string{name + ".b"}}
	if _, got := read(ofB, none); len(got) != 10 || got[9] != "4510" {
		t.Errorf("of one subject: %v", got)
	}
	if _, got := read(natsjetstream.ReadConfig{From: time.Now().Add(time.Hour)}, none); len(got) != 0 {
		t.Errorf("of the future: %d messages", len(got))
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(4500)); err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(ctx, 4510); err != nil {
		t.Fatal(err)
	}
	reader, got = read(natsjetstream.ReadConfig{}, none)
	if len(got) != 20 || slices.Contains(got, "4510") || !reader.Since().IsZero() || reader.Deleted() != 1 {
		t.Errorf("after a purge: %v since %s, %d deleted", got, reader.Since(), reader.Deleted())
	}
	enough := errors.New("enough")
	reader, err = natsjetstream.NewReader(ctx, conn, natsjetstream.ReadConfig{Subjects: []string{name + ".b"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Each(ctx, func(natsjetstream.Stored) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("an error of the caller's: %v", err)
	}
	info, err := stream.Info(ctx)
	if err != nil || info.State.Consumers != 0 {
		t.Errorf("%d consumers are left (%v)", info.State.Consumers, err)
	}
}

// TestAReaderSaysWhatTheLimitsExplain: what a stream has let go of by its limits is too old, and what they do not
// explain somebody took away. What it lets go of while it is read counts as well.
func TestAReaderSaysWhatTheLimitsExplain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	conn, err := natsjetstream.Connect(services.NATS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	const beginning, age, first = "the beginning", "an hour ago", "its first message"
	for i, c := range []struct {
		limits jetstream.StreamConfig
		sent   int
		purge  bool // of all, before the rest is sent
		rest   int
		since  string
	}{
		{jetstream.StreamConfig{}, 3, false, 0, beginning},
		{jetstream.StreamConfig{}, 3, true, 0, beginning},
		{jetstream.StreamConfig{}, 3, true, 1, beginning},
		{jetstream.StreamConfig{FirstSeq: 100}, 3, false, 0, beginning},
		{jetstream.StreamConfig{MaxAge: time.Hour}, 3, true, 0, age},
		{jetstream.StreamConfig{MaxAge: time.Hour}, 3, true, 3, age},
		{jetstream.StreamConfig{MaxMsgs: 10}, 15, false, 0, first},
		{jetstream.StreamConfig{MaxMsgs: 10, MaxAge: time.Hour}, 15, false, 0, first},
		{jetstream.StreamConfig{MaxMsgs: 10}, 15, true, 1, beginning},
		{jetstream.StreamConfig{MaxMsgs: 10, Discard: jetstream.DiscardNew}, 10, true, 10, beginning},
		{jetstream.StreamConfig{MaxBytes: 1000}, 50, false, 0, first},
		{jetstream.StreamConfig{MaxMsgsPerSubject: 1}, 2, false, 0, first},
	} {
		name := "limits-" + strings.ToLower(rand.Text()[:12])
		c.limits.Name, c.limits.Subjects = name, []string{name}
		stream, err := js.CreateStream(ctx, c.limits)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = js.DeleteStream(context.Background(), name) }()
		sendNumbers(ctx, t, js, name, 1, c.sent)
		if c.purge {
			if err := stream.Purge(ctx); err != nil {
				t.Fatal(err)
			}
		}
		sendNumbers(ctx, t, js, name, c.sent+1, c.sent+c.rest)
		reader, err := natsjetstream.NewReader(ctx, conn, natsjetstream.ReadConfig{Stream: name})
		if err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		since := reader.Since()
		if !map[string]bool{
			beginning: since.IsZero(),
			first:     since.Equal(info.State.FirstTime),
			age:       since.Add(time.Hour).Sub(info.TimeStamp).Abs() < time.Minute,
		}[c.since] {
			t.Errorf("%d: it holds what came since %s, want %s; its first is of %s", i, since, c.since, info.State.FirstTime)
		}
		if c.since != first {
			continue
		}
		// All of it goes while it is read.
		if err := reader.Each(ctx, func(natsjetstream.Stored) error {
			sendNumbers(ctx, t, js, name, 1, 1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if info, err = stream.Info(ctx); err != nil || !reader.Since().Equal(info.State.FirstTime) {
			t.Errorf("%d: when it was read it held what came since %s, and its first is of %s (%v)", i, reader.Since(),
				info.State.FirstTime, err)
		}
	}
}

// sendNumbers sends a message for each number, and waits until the stream has them.
func sendNumbers(ctx context.Context, t *testing.T, js jetstream.JetStream, subject string, from, to int) {
	t.Helper()
	var sent []jetstream.PubAckFuture
	for i := from; i <= to; i++ {
		future, err := js.PublishMsgAsync(&nats.Msg{
			Subject: subject, Header: nats.Header{"n": {strconv.Itoa(i)}}, Data: []byte("body"),
		})
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, future)
	}
	for _, future := range sent {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}
