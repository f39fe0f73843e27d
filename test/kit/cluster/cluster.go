// Package cluster runs PostgreSQL clusters of a test's own, which it may stop, kill, copy, promote and
// restore: each in a temporary folder, on a loopback port that stays the same for its whole life.
//
// The programs are those of `make services`. Nothing is left behind, also when the test's process dies: see
// keeper.go. PostgreSQL does not run as root; for root it runs as the user that the services run as.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/port"
)

// Config says what a cluster shall be. The zero value is a cluster of PostgreSQL 15.
type Config struct {
	// Major is the version: 15 or 18. Defaults to 15, which alone comes with pg_basebackup: standbys and backups
	// need it.
	Major int
	// Settings go into postgresql.conf. They stand above the defaults of this package.
	Settings map[string]string
	// Environment are variables of the server's processes, as NAME=value.
	Environment []string
	// Archive keeps the whole log, for [Cluster.Backup] and [Backup.Restore].
	Archive bool
	// Crashed is told when the server has ended and nobody stopped or killed it: how, and the end of its log. It must not
	// call the cluster's methods. Nil: nobody looks.
	Crashed func(how error)
}

// A Cluster is a PostgreSQL with its data. It may be used by one goroutine at a time; [Cluster.URL] and
// [Cluster.Port] by any.
type Cluster struct {
	config   Config
	port     int
	folder   string
	programs string
	server   *server // nil: it does not run
	keeper   *keeper
}

// New makes a cluster and starts it. Whoever made it must [Cluster.Close] it.
func New(ctx context.Context, config Config) (*Cluster, error) {
	c, err := prepare(config)
	if err != nil {
		return nil, err
	}
	err = c.run(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err == nil {
		err = c.configure(c.settings())
	}
	return c.begin(ctx, err)
}

// begin starts a cluster whose data was made, and takes it away if that or the start failed.
func (c *Cluster) begin(ctx context.Context, err error) (*Cluster, error) {
	if err == nil {
		err = c.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// prepare makes the folder and chooses the port.
func prepare(config Config) (*Cluster, error) {
	if config.Major == 0 {
		config.Major = 15
	}
	programs, err := programs(config.Major)
	if err != nil {
		return nil, err
	}
	port, err := port.Free()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "posthaste-cluster-")
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	keeper, err := keep(folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	c := &Cluster{config: config, port: port, folder: folder, programs: programs, keeper: keeper}
	for _, name := range []string{"", "data", "archive"} {
		if err := c.own(filepath.Join(folder, name)); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// own makes a folder of the server's user.
func (c *Cluster) own(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if user := serviceUser(); user != nil {
		if err := os.Chown(folder, int(user.Uid), int(user.Gid)); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	return nil
}

func (c *Cluster) data() string    { return filepath.Join(c.folder, "data") }
func (c *Cluster) archive() string { return filepath.Join(c.folder, "archive") }

// settings are the lines of postgresql.conf.
func (c *Cluster) settings() map[string]string {
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "port": strconv.Itoa(c.port), "unix_socket_directories": c.folder,
		"max_connections": "200", "max_prepared_transactions": "10", "shared_buffers": "64MB", "timezone": "UTC",
		"log_timezone":                "UTC",
		"wal_keep_size":               "256MB", // a standby that was away for a while finds what it missed
		"wal_retrieve_retry_interval": "200ms",
		"dynamic_shared_memory_type":  "mmap", // in the folder: what a killed server leaves behind goes with it
	}
	if c.config.Archive {
		settings["archive_mode"] = "on"
		settings["archive_command"] = fmt.Sprintf("cp %%p %s/%%f.part && mv %s/%%f.part %s/%%f", c.archive(), c.archive(),
			c.archive())
	}
	maps.Copy(settings, c.config.Settings)
	return settings
}

// configure adds lines to the cluster's own file. The last line about a setting counts, and what ALTER SYSTEM
// says counts more.
func (c *Cluster) configure(settings map[string]string) error {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&lines, "%s = %s\n", name, literal(settings[name]))
	}
	return c.add("postgresql.conf", lines.String())
}

// add writes at the end of a file in the data, which the server's user can read.
func (c *Cluster) add(name, text string) error {
	path := filepath.Join(c.data(), name)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	_, err = file.WriteString(text)
	if user := serviceUser(); user != nil {
		err = errors.Join(err, os.Chown(path, int(user.Uid), int(user.Gid)))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Port is where the server listens, for as long as the cluster lives.
func (c *Cluster) Port() int { return c.port }

// URL leads to the database "postgres" as superuser.
func (c *Cluster) URL() string { return URL(c) }

// URL leads to whichever of the clusters takes writes; to one cluster it leads whatever that one is. Only of several
// does each have a time to answer, so that the next is asked: a port where nobody listens refuses at once.
func URL(clusters ...*Cluster) string {
	var hosts []string
	for _, c := range clusters {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(c.port))
	}
	url := "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable"
	if len(clusters) > 1 {
		url += "&connect_timeout=5&target_session_attrs=read-write"
	}
	return url
}

// Exec runs one statement on a connection of its own.
func (c *Cluster) Exec(ctx context.Context, statement string, args ...any) error {
	return c.on(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement, args...)
		return err
	})
}

// Text reads one value as text, on a connection of its own.
func (c *Cluster) Text(ctx context.Context, query string, args ...any) (text string, err error) {
	err = c.on(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT ("+query+")::text", args...).Scan(&text)
	})
	return text, err
}

func (c *Cluster) on(ctx context.Context, run func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(c.URL())
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	config.ConnectTimeout = eventually.Patience // it only ends a hang
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := run(conn); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Set changes a setting that needs no restart, and returns when new sessions have it.
func (c *Cluster) Set(ctx context.Context, name, value string) error {
	before, err := c.Text(ctx, "pg_conf_load_time()")
	if err != nil {
		return err
	}
	if err := c.Exec(ctx, "ALTER SYSTEM SET "+pgx.Identifier{name}.Sanitize()+" = "+literal(value)); err != nil {
		return err
	}
	if err := c.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	return eventually.Within(ctx, eventually.Patience, name+" is "+value, func() (bool, error) {
		now, err := c.Text(ctx, "pg_conf_load_time()")
		return now != before, err
	})
}
