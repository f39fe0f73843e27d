package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// sayPeriod is the least time between two lines of the log about the same files.
const sayPeriod = 30 * time.Second

// credentials are what a connection proves itself with: the user, the password, the certificates. They are read
// anew for every connection to the database, so that what was rotated is used without a restart.
type credentials struct {
	values *config.Values
	key    config.Key[config.Hidden]
	logger *slog.Logger

	mutex   sync.Mutex
	servers []string       // where the URL leads to; that does not change while the program runs
	good    *pgconn.Config // the last that could be read
	saidAt  time.Time
}

// newCredentials reads them for the first time.
func newCredentials(values *config.Values, key config.Key[config.Hidden], logger *slog.Logger) (*credentials, error) {
	c := &credentials{values: values, key: key, logger: logger}
	parsed, err := parseDatabase(values, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key.Name(), err)
	}
	c.servers, c.good = serversOf(parsed), parsed
	return c, nil
}

// parseDatabase understands a URL as its file has it now. That reads the files that the URL names, too. The error
// does not quote it.
func parseDatabase(values *config.Values, key config.Key[config.Hidden]) (*pgconn.Config, error) {
	url, err := values.Current(key)
	if err != nil {
		return nil, err
	}
	parsed, err := parseDatabaseURL(url.Reveal())
	if err != nil {
		return nil, err
	}
	password, err := values.Current(databasePassword)
	if err != nil {
		return nil, err
	}
	if password.Reveal() != "" {
		parsed.Password = password.Reveal()
	}
	return parsed, nil
}

// parseDatabaseURL says what is wrong with a URL without quoting it.
func parseDatabaseURL(url string) (*pgconn.Config, error) {
	parsed, err := pgconn.ParseConfig(url)
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return nil, fmt.Errorf("a file that it names: %w", file)
	}
	if err != nil {
		return nil, errors.New("must be a URL that PostgreSQL clients understand, and the certificates that it names must " +
			"be some")
	}
	return parsed, nil
}

// serversOf are the servers that a URL leads to, in its order, and the database there.
func serversOf(parsed *pgconn.Config) []string {
	found := []string{parsed.Database, parsed.Host + ":" + strconv.Itoa(int(parsed.Port))}
	for _, other := range parsed.Fallbacks {
		found = append(found, other.Host+":"+strconv.Itoa(int(other.Port)))
	}
	return slices.Compact(found)
}

// renew gives a connection that is about to be made what the files hold now. Where they cannot be used, say while
// they are being written, it is what they held before.
func (c *credentials) renew(ctx context.Context, connection *pgx.ConnConfig) {
	fresh, err := c.read()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err == nil {
		c.good = fresh
	} else if time.Since(c.saidAt) >= sayPeriod {
		c.saidAt = time.Now()
		c.logger.WarnContext(ctx, "the credentials of the database cannot be read again: the last ones stay in use",
			slog.String("error", err.Error()))
	}
	connection.User, connection.Password = c.good.User, c.good.Password
	connection.TLSConfig, connection.Fallbacks = c.good.TLSConfig, c.good.Fallbacks
}

// read finds out what the files hold now, and refuses what a start would refuse.
func (c *credentials) read() (*pgconn.Config, error) {
	parsed, err := parseDatabase(c.values, c.key)
	switch {
	case err != nil:
		return nil, err
	case !slices.Equal(serversOf(parsed), c.servers):
		return nil, fmt.Errorf("%s leads to another server or database than at the start: restart to go there", c.key.Name())
	case !allowsInsecure(c.values, allowDatabase) && unverified(parsed) != "":
		return nil, fmt.Errorf("%s no longer asks for verified TLS: add sslmode=verify-full", c.key.Name())
	}
	return parsed, nil
}

// openCredentials prepares those of both ways to the database.
func (p *publisher) openCredentials() (err error) {
	if p.credentials, err = newCredentials(p.values, databaseURL, p.logger); err != nil {
		return err
	}
	p.listenCredentials = p.credentials
	if url := databaseListenURL.Get(p.values).Reveal(); url != "" && url != "off" {
		p.listenCredentials, err = newCredentials(p.values, databaseListenURL, p.logger)
	}
	return err
}

// beforeConnect is called before every connection to the database.
func (p *publisher) beforeConnect(ctx context.Context, connection *pgx.ConnConfig) error {
	if connection.ConnString() == databaseURL.Get(p.values).Reveal() {
		p.credentials.renew(ctx, connection)
	} else {
		p.listenCredentials.renew(ctx, connection)
	}
	return nil
}
