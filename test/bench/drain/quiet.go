package drain

import (
	"context"
	"errors"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
)

// QuietCosts counts on a server of its own, to which nothing else happens, and whose WAL has nothing for logical
// decoding in it, as that of most. The changes are made to the tables beforehand: what somebody may do to them.
func QuietCosts(ctx context.Context, changes ...string) (_ Costs, err error) {
	server, err := cluster.New(ctx, cluster.Config{Major: 18, Settings: map[string]string{
		"wal_level": "replica", "shared_preload_libraries": "pg_stat_statements", "autovacuum": "off",
		"checkpoint_timeout": "1d", "max_wal_size": "4GB",
		"fsync": "off", // it loses nothing that anybody wants to keep, and writes the same
	}})
	if err != nil {
		return Costs{}, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	db, err := bench.NewDatabase(ctx, server.URL())
	if err != nil {
		return Costs{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := NewEnv(ctx, db)
	if err != nil {
		return Costs{}, err
	}
	if err := db.Exec(ctx, changes...); err != nil {
		return Costs{}, err
	}
	return w.Costs(ctx)
}
