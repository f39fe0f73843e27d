package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/daemon"
)

// open connects to the database that the flags and the environment name. It is asked at once, so that a database that
// does not answer is told as that, and not as what could not be done there.
func (c *rootCommand) open(ctx context.Context) (*sql.DB, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(notConnected(err, config), db.Close())
	}
	return db, nil
}

// connect connects as well, for one who does one thing.
func (c *rootCommand) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, notConnected(err, config)
	}
	return conn, nil
}

// pool connects as well, for work that is stopped in the middle: a statement that is cut off takes its connection
// along, and what has to be written at the end needs another.
func (c *rootCommand) pool(ctx context.Context) (*pgxpool.Pool, error) {
	connection, err := c.config()
	if err != nil {
		return nil, err
	}
	return poolOf(ctx, connection, 1)
}

// poolOf has so many connections.
func poolOf(ctx context.Context, connection *pgx.ConnConfig, connections int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	config.ConnConfig, config.MaxConns = connection, connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, notConnected(err, connection)
	}
	return pool, nil
}

// notConnected says what to do about a database that does not let us in.
func notConnected(err error, config *pgx.ConnConfig) error {
	told := problem{
		code: "not_connected", exit: exitFailed, hint: "is it up, and does the URL lead to it?",
	}
	if state := sqlState(nil); errors.As(err, &state) {
		switch code := state.SQLState(); {
		case strings.HasPrefix(code, "28"):
			told.code, told.exit = "login_failed", exitNotLetIn
			told.hint = "look at the user, the password and pg_hba.conf"
			if config.Password == "" {
				told.hint = "no password is given: set POSTHASTE_DATABASE_PASSWORD, or the file that holds it as " +
					"POSTHASTE_DATABASE_PASSWORD_FILE; with one, look at the user and pg_hba.conf"
			}
		case strings.Contains(err.Error(), "unsupported startup parameter"):
			told.code = "pooler"
			told.hint = "a pooler is there that lends connections for a transaction: add default_query_exec_mode=exec to the URL"
		case code == "3D000":
			told.code, told.hint = "no_database", "the URL names a database that is not there"
		default:
			told.hint = "the server is there and refuses"
		}
	}
	told.err = fmt.Errorf("cannot connect to the database; %s\n%w", told.hint, err)
	return told
}

// config is how that database is reached.
func (c *rootCommand) config() (*pgx.ConnConfig, error) {
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, usageError{
			"no database is given: set POSTHASTE_DATABASE_URL, POSTHASTE_DATABASE_URL_FILE or DATABASE_URL",
		}
	}
	return c.configAt(address)
}

// configAt is how the database is reached when its address is known.
func (c *rootCommand) configAt(address string) (*pgx.ConnConfig, error) {
	config, err := c.configOf(address)
	if err != nil {
		return nil, err
	}
	password, err := c.secret("POSTHASTE_DATABASE_PASSWORD")
	if password != "" {
		config.Password = password
	}
	return config, err
}

// configOf is how any database is reached, with nothing but what its address says.
func (c *rootCommand) configOf(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The cause may quote a piece of the password, for instance as a port that is not a number.
		return nil, usageError{
			"the database URL cannot be read: it is postgres://user:password@host:port/database or a list of key=value, " +
				"and in a URL the characters / @ : ? # % of a password are written in percent form, for instance %2F",
		}
	}
	if err := c.checkTLS(address); err != nil {
		return nil, err
	}
	// Statements without a name work behind every pooler.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "outboxctl"
	}
	return config, nil
}

// address is the database, from the strongest place that names one.
func (c *rootCommand) address() (string, error) {
	switch {
	case c.databaseURL != "" && c.databaseURLFile != "":
		return "", usageError{"--database-url and --database-url-file name two databases: give one of them"}
	case c.databaseURL != "":
		return c.databaseURL, nil
	case c.databaseURLFile != "":
		return c.readSecret("--database-url-file", c.databaseURLFile)
	}
	address, err := c.secret("POSTHASTE_DATABASE_URL")
	if err != nil || address != "" {
		return address, err
	}
	return cmp.Or(c.getenv("DATABASE_URL"), c.configured), nil
}

// arguments are the flags by which another command reaches the same database. A password is no argument.
func (c *rootCommand) arguments() (words []string) {
	if c.databaseURLFile != "" {
		words = append(words, "--database-url-file", c.databaseURLFile)
	}
	if c.databaseURL != "" {
		words = append(words, "--database-url", withoutPassword(c.databaseURL))
	}
	if len(c.insecureAllow) > 0 {
		words = append(words, "--insecure-allow", strings.Join(c.insecureAllow, ","))
	}
	return words
}

// passwordSetting is a password in a list of key=value.
var passwordSetting = regexp.MustCompile(`(?:^|\s)(?:ssl)?password\s*=\s*(?:'(?:\\.|[^'\\])*'|(?:\\.|[^\s\\])*)`)

// withoutPassword is an address as others may see it, with all else that it says.
func withoutPassword(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme == "" {
		return strings.TrimSpace(passwordSetting.ReplaceAllString(address, ""))
	}
	if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	settings := parsed.Query()
	settings.Del("password")
	settings.Del("sslpassword")
	parsed.RawQuery = settings.Encode()
	return parsed.String()
}

// secret is what a variable holds, or the file that the variable with _FILE at its end names.
func (c *rootCommand) secret(variable string) (string, error) {
	value, file := c.getenv(variable), c.getenv(variable+"_FILE")
	if value != "" && file != "" {
		return "", usageError{variable + " and " + variable + "_FILE are both set: set one of them"}
	}
	if file != "" {
		return c.readSecret(variable+"_FILE", file)
	}
	return value, nil
}

// readSecret reads a file that holds a secret, and warns of one that everybody can read.
func (c *rootCommand) readSecret(from, file string) (string, error) {
	text, everybody, err := daemon.ReadSecret(file)
	if err != nil {
		return "", usageError{fmt.Sprintf("%s: %v", from, err)}
	}
	if text == "" {
		return "", usageError{fmt.Sprintf("%s: %s is empty", from, file)}
	}
	if everybody {
		_, _ = fmt.Fprintf(c.warn, "outboxctl: every user of this machine can read %s: chmod o= it\n", file)
	}
	return text, nil
}

// checkTLS refuses what outbox-publisher refuses.
func (c *rootCommand) checkTLS(address string) error {
	allowed := append(strings.Split(c.getenv("POSTHASTE_INSECURE_ALLOW"), ","), c.insecureAllow...)
	if slices.ContainsFunc(allowed, func(name string) bool { return strings.TrimSpace(name) == "database" }) {
		return nil
	}
	if err := daemon.CheckDatabaseURL(address); err != nil {
		return usageError{fmt.Sprintf("the database URL: %v (--insecure-allow database)", err)}
	}
	return nil
}
