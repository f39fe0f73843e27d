package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A type moves from one topic to another while relays come and go: each sends to the topic that it knows, and what it
// knew goes with it. So a type has as many topics as relays name that have not ended; those that show messages of it;
// and of what a relay published that has ended since, nobody knows more than which topics were in use.

// typeTopics are where the events of a type go.
type typeTopics struct {
	// topics are those that relays name which have not ended, that of the one that started last first; and then others
	// that are read and have messages of the type.
	topics []string
	// since is when the first of these relays started.
	since time.Time
}

func (own *typeTopics) add(topics ...string) {
	for _, topic := range topics {
		if !slices.Contains(own.topics, topic) {
			own.topics = append(own.topics, topic)
		}
	}
}

// know takes in where types go now, beside what was known before: what a relay sent that has ended meanwhile is still
// looked at.
func (a *audit) know(ctx context.Context, tx pgx.Tx) error {
	types, err := a.table.typeTopics(ctx, tx)
	if err != nil {
		return err
	}
	for kind, before := range a.types {
		now, known := types[kind]
		now.add(before.topics...)
		if !known || before.since.Before(now.since) {
			now.since = before.since
		}
		types[kind] = now
	}
	a.types = types
	if err := tx.QueryRow(ctx, a.table.sql("ended")).Scan(&a.ended); err != nil {
		return fmt.Errorf("relays that have ended: %w", err)
	}
	used, err := a.table.inUse(ctx, tx, a.report.From.Add(-a.config.Slack))
	a.unread = slices.DeleteFunc(used, func(topic string) bool { return !a.notRead(topic) })
	return err
}

// show remembers that a topic has a message of a type: it may have been the topic of others of this type as well. A
// copy says nothing, since it goes where somebody wants it.
func (a *audit) show(m Message) {
	own, known := a.types[m.Type]
	if known && !m.Copy && !slices.Contains(own.topics, m.Topic) && !a.notRead(m.Topic) {
		own.add(m.Topic)
		a.types[m.Type] = own
	}
}

// why says what else is known of an event that is in none of the topics of its type, and whether it may be in another
// one that was not read.
func (a *audit) why(e event, own typeTopics) (why string, unsure bool) {
	var parts []string
	if len(own.topics) > 1 {
		parts = append(parts, "it is in none of the topics of its type: "+some(own.topics))
	}
	// Where every event must be in the topics that are read, there is no other.
	if unsure = !a.config.AllTypes && (e.publishedAt.Before(own.since) || !e.publishedAt.After(a.ended)); unsure {
		text := "a relay that has ended since may have sent it to another topic"
		if len(a.unread) > 0 {
			text += ", and these were in use and are not read: " + some(a.unread)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; "), unsure
}

// some names topics, the first few of many.
func some(topics []string) string {
	const most = 5
	if left := len(topics) - most; left > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(topics[:most], ", "), left)
	}
	return strings.Join(topics, ", ")
}

// Topics are those that the relays of an outbox publish to: of each event type all that relays name which have not
// ended. While a type moves these differ.
func Topics(ctx context.Context, db DB, schema string) ([]string, error) {
	named, _, err := look(ctx, db, schema, 0)
	return named, err
}

// FormerTopics are those that events were published to since so long ago, and that no relay names any more which has
// not ended: what went there before its type moved is there still. Relays that survey write them down for 72 hours.
func FormerTopics(ctx context.Context, db DB, schema string, since time.Duration) ([]string, error) {
	_, former, err := look(ctx, db, schema, since)
	return former, err
}

func look(ctx context.Context, db DB, schema string, since time.Duration) (named, former []string, err error) {
	t := table{db: db, schema: Config{Schema: schema}.withDefaults().Schema}
	err = t.look(ctx, func(tx pgx.Tx, now time.Time) error {
		types, err := t.typeTopics(ctx, tx)
		if err != nil {
			return err
		}
		for _, own := range types {
			named = append(named, own.topics...)
		}
		slices.Sort(named)
		named = slices.Compact(named)
		if since == 0 {
			return nil
		}
		former, err = t.inUse(ctx, tx, now.Add(-since))
		former = slices.DeleteFunc(former, func(topic string) bool { return slices.Contains(named, topic) })
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", t.said(err))
	}
	return named, former, nil
}

func (t table) typeTopics(ctx context.Context, tx pgx.Tx) (map[string]typeTopics, error) {
	rows, err := tx.Query(ctx, t.sql("topics"))
	if err != nil {
		return nil, fmt.Errorf("the topics: %w", err)
	}
	types := map[string]typeTopics{}
	var kind, topic string
	var since time.Time
	if _, err := pgx.ForEachRow(rows, []any{&kind, &topic, &since}, func() error {
		own := types[kind]
		own.add(topic)
		if own.since.IsZero() || since.Before(own.since) {
			own.since = since
		}
		types[kind] = own
		return nil
	}); err != nil {
		return nil, fmt.Errorf("the topics: %w", err)
	}
	return types, nil
}

// inUse are the topics that events were published to, from the minute on that has this moment.
func (t table) inUse(ctx context.Context, tx pgx.Tx, from time.Time) ([]string, error) {
	rows, err := tx.Query(ctx, t.sql("in_use"), from.Truncate(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("the topics that were in use: %w", err)
	}
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("the topics that were in use: %w", err)
	}
	return topics, nil
}
