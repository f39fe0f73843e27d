package redisinbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Config says where and for how long marks are kept. Its zero value is the production default.
type Config struct {
	// Prefix begins every key. 1 to 64 of letters, digits, '.', '_' and '-'. Defaults to "outbox".
	Prefix string
	// Hold is how long an event stays held when nothing more is heard of its handler. It is extended at every third
	// of it while the handler runs, so it is no limit for handlers; it is how long an event waits after a crash, and
	// how long Redis may be away before a handler is cancelled. Defaults to 30 s, at least 100 ms.
	Hold time.Duration
	// Keep is how long a handled event is remembered. It must outlive every way in which a copy can still come:
	// see BrokerRetention. Defaults to 720 h.
	Keep time.Duration
	// FailOpen lets Do run handlers while Redis cannot be asked: effects happen twice rather than late. Defaults to
	// false: Do returns an [UnavailableError] and runs nothing.
	FailOpen bool

	// BrokerRetention is how long the broker keeps a message that it could deliver again, OutboxRetention how long the
	// outbox keeps a published event that could be redelivered, and ReplayHorizon how much later than the longer of them a
	// copy may still come: the broker's retention once more where events are redelivered at the last moment, or the age of
	// an archive. Negative: forever. Check compares them with Keep. Default to nothing.
	BrokerRetention time.Duration
	OutboxRetention time.Duration
	ReplayHorizon   time.Duration

	// Logger takes what no error tells, because the handler was run or has failed with an error of its own. Defaults
	// to slog.Default().
	Logger *slog.Logger
}

const shortestHold = 100 * time.Millisecond

var (
	prefixPattern   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	consumerPattern = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)
)

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "outbox"
	}
	if c.Hold == 0 {
		c.Hold = 30 * time.Second
	}
	if c.Keep == 0 {
		c.Keep = 720 * time.Hour
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate says everything that is wrong with the configuration.
func (c Config) validate() error {
	var problems []error
	if !prefixPattern.MatchString(c.Prefix) {
		problems = append(problems, fmt.Errorf("redisinbox: Prefix %.80q: it is 1 to 64 of letters, digits, '.', '_' and '-'",
			c.Prefix))
	}
	if c.Hold < shortestHold {
		problems = append(problems, fmt.Errorf("redisinbox: Hold %s: the least is %s", c.Hold, shortestHold))
	}
	if c.Keep < c.Hold {
		problems = append(problems, fmt.Errorf("redisinbox: Keep %s is shorter than Hold, %s", c.Keep, c.Hold))
	}
	return errors.Join(problems...)
}

// A Guard keeps a consumer's memory in Redis. It may be used by many goroutines at once; it has nothing to close.
type Guard struct {
	client redis.UniversalClient
	config Config
	tenant string // escaped, with its colon; empty for none
	name   string // of this guard among all that there are
}

// New makes a guard on a client, which stays the caller's. It does not ask Redis anything: call [Guard.Check] once,
// when the program starts.
func New(client redis.UniversalClient, config Config) (*Guard, error) {
	config = config.withDefaults()
	err := config.validate()
	if client == nil {
		err = errors.Join(errors.New("redisinbox: a client is missing"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Guard{client: client, config: config, name: rand.Text()}, nil
}

// ForTenant returns a guard that keeps a tenant's events apart: an id that one tenant has chosen never hides another's
// event. An empty tenant is none.
func (g *Guard) ForTenant(tenant string) *Guard {
	other := *g
	other.tenant = ""
	if tenant != "" {
		other.tenant = url.QueryEscape(tenant) + ":"
	}
	return &other
}

// key names an event's mark: <prefix>:evt:processed:<consumer>:<event_id>, with the tenant before the id if there is
// one. Prefix and consumer have no colon and ids are of one length, so no two events share a key. The tenant is escaped
// so that people can read the key, and so that no tenant can choose a cluster's slot with braces.
func (g *Guard) key(consumer string, eventID outbox.ID) (string, error) {
	if !consumerPattern.MatchString(consumer) {
		return "", fmt.Errorf("%w: consumer %.80q: it is 1 to 64 of a-z, 0-9, '.', '_' and '-'", ErrRefused, consumer)
	}
	if eventID == (outbox.ID{}) {
		// Whoever forgets to read the id would have one mark for all of their events, and lose all but the first.
		return "", fmt.Errorf("%w: the event has no id: read it from the message's event_id", ErrRefused)
	}
	return g.config.Prefix + ":evt:processed:" + consumer + ":" + g.tenant + eventID.String(), nil
}

// A mark is the value of a key. Whatever is not held is handled, also what others have written.
const (
	heldMark   = "held:"   // with a token, while a handler runs
	doneMark   = "done:"   // with the same token, when it has finished
	calledMark = "marked:" // with the guard's name and a token, by CheckAndMarkProcessed
)

// within bounds a question to Redis: an answer that takes longer than a hold is of no use.
func (g *Guard) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, g.config.Hold)
}
