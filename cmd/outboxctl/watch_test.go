package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestALostConnectionIsMadeAnew: whoever watches goes on watching.
func TestALostConnectionIsMadeAnew(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		event := func() {
			e.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
				VALUES ($1::text::uuid, 'order_created', 'order', '1', json_build_object('eventId', $1::text))`,
				outbox.NewID().String())
		}
		event()
		address, err := url.Parse(e.url)
		if err != nil {
			t.Fatal(err)
		}
		settings := address.Query()
		settings.Set("application_name", e.schema)
		address.RawQuery = settings.Encode()
		// Lines of the look that was under way when the connection was cut do not count.
		for line, after := range map[string]int{"top": 3, "events tail --last 1": 1} {
			ctx, stop := context.WithCancel(within(t))
			reader, writer := io.Pipe()
			ended := make(chan int, 1)
			var said strings.Builder
			go func() {
				code := execute(ctx, append(strings.Fields(line), "--every", "100ms", "-o", "ndjson", "--schema", e.schema),
					writer, &said, func(name string) string {
						return map[string]string{"DATABASE_URL": address.String()}[name]
					})
				_ = writer.Close()
				ended <- code
			}()
			lines := bufio.NewScanner(reader)
			shown := lines.Scan()
			e.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", e.schema)
			event()
			for range after {
				shown = shown && lines.Scan()
			}
			stop()
			_ = reader.Close()
			if code := <-ended; !shown || code != exitDone {
				t.Errorf("%s: it goes on: %t, exit code %d\n%s", line, shown, code, said.String())
			}
		}
	})
}

// TestAJobIsWatchedOverALostConnection: the connection is cut once it has looked, and the end is told all the same.
func TestAJobIsWatchedOverALostConnection(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 3)
		const job = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"
		e.try(t, []jobCall{{line: "dead redrive topic:orders --reason x --yes --detach --action " + job, says: "job "}})
		address, err := url.Parse(e.url)
		if err != nil {
			t.Fatal(err)
		}
		settings := address.Query()
		settings.Set("application_name", e.schema)
		address.RawQuery = settings.Encode()
		reader, writer := io.Pipe()
		var out bytes.Buffer
		ended := make(chan int, 1)
		go func() {
			code := execute(within(t), []string{"jobs", "watch", job, "--schema", e.schema}, &out, writer,
				func(name string) string { return map[string]string{"DATABASE_URL": address.String()}[name] })
			_ = writer.Close()
			ended <- code
		}()
		lines := bufio.NewScanner(reader)
		lines.Scan() // how far it is: it has looked
		e.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", e.schema)
		if lines.Scan(); !strings.Contains(lines.Text(), "made anew") {
			t.Errorf("cut: %s", lines.Text())
		}
		e.try(t, []jobCall{{line: "jobs work " + job, says: "redrive: done, 3 events"}})
		if _, err := io.Copy(io.Discard, reader); err != nil {
			t.Error(err)
		}
		if code := <-ended; code != exitDone || !strings.Contains(out.String(), "redrive: done, 3 events") {
			t.Errorf("exit code %d\n%s", code, out.String())
		}
	})
}

// TestWhatALeftJobNeeds: of one that this command worked on, also how to go on with that.
func TestWhatALeftJobNeeds(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 3)
		const job = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"
		e.try(t, []jobCall{{line: "dead redrive topic:orders --reason x --yes --detach --action " + job, says: "job "}})
		e.exec(t, `CREATE FUNCTION {schema}.cut() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
		e.exec(t, `CREATE TRIGGER cut BEFORE UPDATE ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION {schema}.cut()`)
		e.try(t, []jobCall{
			{line: "jobs work " + job, code: exitFailed, says: "'outboxctl jobs work " + job},
			{line: "jobs show " + job, says: "running"},
		})
	})
}

// TestThatNobodyWorksOnAJobIsSaid: after a while without a worker, once, and not while somebody works.
func TestThatNobodyWorksOnAJobIsSaid(t *testing.T) {
	t.Parallel()
	for worker, want := range map[string]int{"": 1, "publisher-1": 0} {
		var said strings.Builder
		begin := time.Now()
		job := operator.Job{ID: outbox.NewID(), State: operator.JobRunning, Worker: worker, Expected: 1843, Done: 2}
		meter := newJobMeter(&rootCommand{warn: &said, stderr: &said}, operator.Job{}, begin)
		for now := begin; now.Before(begin.Add(time.Minute)); now = now.Add(lookAtJob) {
			meter.note(job, now)
			meter.sayIdle(job, now)
			if early := now.Sub(begin) < nobodyTakes; early && said.Len() > 0 {
				t.Fatalf("after %s: %s", now.Sub(begin), said.String())
			}
		}
		if strings.Count(said.String(), "nobody works on it: start an outbox-publisher") != want {
			t.Errorf("with the worker %q:\n%s", worker, said.String())
		}
		if pace := meter.pace(job, begin.Add(time.Hour)); pace != "" {
			t.Errorf("2 of 1,843 in an hour: %s", pace)
		}
		job.Done = 1002
		if meter.note(job, begin.Add(time.Minute)); worker == "" {
			continue // time without a worker does not count
		}
		if pace := meter.pace(job, begin.Add(time.Minute)); !strings.Contains(pace, " left") {
			t.Errorf("a job that moves: %s", pace)
		}
	}
}
