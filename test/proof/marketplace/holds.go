package marketplace

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/outbox"
)

// marks are what the compliance consumer has in Redis: the value of each event's key.
func marks(ctx context.Context, client *redis.Client) (map[outbox.ID]string, error) {
	const keys = "pf:evt:processed:compliance:"
	found := map[outbox.ID]string{}
	scan := client.Scan(ctx, 0, keys+"*", 1000).Iterator()
	var names []string
	for scan.Next(ctx) {
		names = append(names, scan.Val())
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("marketplace proof: scan Redis: %w", err)
	}
	if len(names) == 0 {
		return found, nil
	}
	values, err := client.MGet(ctx, names...).Result()
	if err != nil {
		return nil, fmt.Errorf("marketplace proof: read Redis: %w", err)
	}
	for i, name := range names {
		id, err := outbox.ParseID(strings.TrimPrefix(name, keys))
		if err != nil {
			return nil, fmt.Errorf("marketplace proof: the key %s: %w", name, err)
		}
		if value, there := values[i].(string); there {
			found[id] = value
		}
	}
	return found, nil
}

// tokens are those of the marks that begin so.
func tokens(marks map[outbox.ID]string, beginning string) map[outbox.ID]string {
	list := map[outbox.ID]string{}
	for id, mark := range marks {
		if token, is := strings.CutPrefix(mark, beginning); is {
			list[id] = token
		}
	}
	return list
}
