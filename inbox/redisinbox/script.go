package redisinbox

import (
	"context"
	_ "embed" // the scripts
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts change a mark only if it is what the caller believes. Each is harmless when it is run twice, because the
// client sends a command again when its answer is lost. After a restart Redis does not know them; the client then sends
// them whole.
var (
	//go:embed put.lua
	putText   string
	putScript = redis.NewScript(putText)

	//go:embed remove.lua
	removeText   string
	removeScript = redis.NewScript(removeText)
)

// put makes a mark what it shall be, if there is none or if it is the caller's own; otherwise it returns what was found
// and how long that has left.
func (g *Guard) put(ctx context.Context, key, own, mark string,
	ttl time.Duration,
) (found string, left time.Duration, err error) {
	ctx, cancel := g.within(ctx)
	defer cancel()
	answer, err := putScript.Run(ctx, g.client, []string{key}, own, mark, ttl.Milliseconds()).Slice()
	if err != nil {
		return "", 0, fmt.Errorf("redis: %w", err)
	}
	if len(answer) == 2 {
		text, isText := answer[0].(string)
		milliseconds, isNumber := answer[1].(int64)
		if isText && isNumber {
			return text, time.Duration(milliseconds) * time.Millisecond, nil
		}
	}
	return "", 0, fmt.Errorf("redis: an answer of %d parts that put.lua does not give", len(answer))
}

// remove removes a mark that begins as the caller's own does; otherwise it returns what was found.
func (g *Guard) remove(ctx context.Context, key, beginning string) (found string, err error) {
	ctx, cancel := g.within(ctx)
	defer cancel()
	found, err = removeScript.Run(ctx, g.client, []string{key}, beginning).Text()
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	return found, nil
}
