package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Standby makes a streaming copy of this cluster and starts it. The name is its application_name: with
//
//	primary.Set(ctx, "synchronous_standby_names", name)
//
// commits wait for it.
func (c *Cluster) Standby(ctx context.Context, name string) (*Cluster, error) {
	standby, err := prepare(c.config)
	if err != nil {
		return nil, err
	}
	err = c.run(ctx, "pg_basebackup", "-D", standby.data(), "-X", "stream", "-c", "fast", "--no-sync")
	if err == nil {
		err = standby.configure(standby.settings())
	}
	if err == nil {
		// What the primary was told by ALTER SYSTEM was copied too and counts more than a line in postgresql.conf.
		err = standby.add("postgresql.auto.conf", fmt.Sprintf(
			"synchronous_standby_names = ''\nprimary_conninfo = 'host=127.0.0.1 port=%d user=postgres application_name=%s'\n",
			c.port, name))
	}
	if err == nil {
		err = standby.add("standby.signal", "")
	}
	if _, err = standby.begin(ctx, err); err != nil {
		return nil, err
	}
	err = eventually.Within(ctx, eventually.Patience, "the standby streams", func() (bool, error) {
		streaming, err := c.Text(ctx,
			"SELECT count(*) FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming'", name)
		return streaming == "1", err
	})
	if err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

// Detach stops a standby's receiving: what the primary commits from now on, the standby will never have.
func (c *Cluster) Detach(ctx context.Context) error {
	if err := c.Set(ctx, "primary_conninfo", ""); err != nil {
		return err
	}
	return eventually.Within(ctx, eventually.Patience, "the standby receives nothing", func() (bool, error) {
		receivers, err := c.Text(ctx, "SELECT count(*) FROM pg_stat_wal_receiver")
		return receivers == "0", err
	})
}

// Promote makes a standby take writes, on a timeline of its own.
func (c *Cluster) Promote(ctx context.Context) error {
	promoted, err := c.Text(ctx, "SELECT pg_promote(true, $1)", int(eventually.Patience.Seconds()))
	if err == nil && promoted != "true" {
		err = fmt.Errorf("cluster: the standby was not promoted within %s", eventually.Patience)
	}
	return err
}

// A Backup is a copy of a cluster's data at a moment. With the archive it is every later moment as well.
type Backup struct {
	of     *Cluster
	folder string
}

// Backup copies the data of a cluster with an archive. The copy lives as long as the cluster's folder.
func (c *Cluster) Backup(ctx context.Context) (*Backup, error) {
	if !c.config.Archive {
		return nil, errors.New("cluster: a backup needs the archive")
	}
	backup := &Backup{of: c, folder: filepath.Join(c.folder, "backup")}
	if err := c.own(backup.folder); err != nil {
		return nil, err
	}
	return backup, c.run(ctx, "pg_basebackup", "-D", backup.folder, "-X", "fetch", "-c", "fast", "--no-sync")
}

// Point names this moment and returns when the archive has it.
func (c *Cluster) Point(ctx context.Context, name string) error {
	if err := c.Exec(ctx, "SELECT pg_create_restore_point($1)", name); err != nil {
		return err
	}
	segment, err := c.Text(ctx, "pg_walfile_name(pg_switch_wal())")
	if err != nil {
		return err
	}
	return eventually.Within(ctx, eventually.Patience, "the archive has the log", func() (bool, error) {
		_, err := os.Stat(filepath.Join(c.archive(), segment))
		return err == nil, err
	})
}

// Restore makes a new cluster from the backup and the archive as it was at the point of this name, and starts
// it. Like every restore it begins a new timeline.
func (b *Backup) Restore(ctx context.Context, point string) (*Cluster, error) {
	config := b.of.config
	config.Archive = false
	restored, err := prepare(config)
	if err != nil {
		return nil, err
	}
	err = restored.copy(ctx, b.folder)
	if err == nil {
		settings := restored.settings()
		settings["archive_mode"] = "off"
		settings["restore_command"] = fmt.Sprintf("cp %s/%%f %%p", b.of.archive())
		settings["recovery_target_name"] = point
		settings["recovery_target_action"] = "promote"
		err = restored.configure(settings)
	}
	if err == nil {
		err = restored.add("recovery.signal", "")
	}
	if _, err = restored.begin(ctx, err); err != nil {
		return nil, err
	}
	err = eventually.Within(ctx, eventually.Patience, "the restore has ended", func() (bool, error) {
		recovering, err := restored.Text(ctx, "pg_is_in_recovery()")
		return strings.HasPrefix(recovering, "f"), err
	})
	if err != nil {
		return nil, errors.Join(err, restored.Close())
	}
	return restored, nil
}

// copy copies a folder of data as the server's user, so that the copy is that user's.
func (c *Cluster) copy(ctx context.Context, from string) error {
	command := c.command(ctx, "postgres")
	command.Path, command.Args = "/bin/cp", []string{"cp", "-a", from + "/.", c.data()}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cluster: cp: %w: %s", err, output)
	}
	return nil
}
