package look

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// watched are the screens that ten people leave open, each in a console of their own.
var watched = []string{
	"", "events", "events?q=state:dead", "aggregate?type=order&id=blocked", "problems", "jobs", "path", "topics", "relays",
	"database",
}

// Open is what a console costs that somebody leaves open.
type Open struct {
	Path  string
	Every time.Duration // it is read again
	// Share is how much of a core the database needs for it.
	Share float64
}

// A watcher is a console that is open.
type watcher struct {
	path  string
	name  string // of its connections
	of    http.Handler
	pool  *pgxpool.Pool
	every time.Duration
}

// refresh is in a page that reads itself again, after so many seconds.
var refresh = regexp.MustCompile(`data-refresh="(\d+)"`)

// watch opens ten consoles. close ends them.
func (r *run) watch(ctx context.Context) (list []*watcher, closeAll func(), err error) {
	closeAll = func() {
		for _, w := range list {
			w.pool.Close()
		}
	}
	for i, path := range watched {
		w := &watcher{path: path, name: fmt.Sprintf("bench-console-%d", i)}
		config, err := pgx.ParseConfig(r.db.URL)
		if err != nil {
			return list, closeAll, fmt.Errorf("look: %w", err)
		}
		w.pool, err = console.PoolOf(ctx, config, func(_ context.Context, config *pgx.ConnConfig) error {
			config.RuntimeParams["application_name"] = w.name
			return nil
		})
		if err != nil {
			return list, closeAll, fmt.Errorf("look: %w", err)
		}
		list = append(list, w)
		if w.of, err = page(w.pool); err != nil {
			return list, closeAll, err
		}
		body, _, err := r.open(ctx, w.of, path)
		if err != nil {
			return list, closeAll, err
		}
		found := refresh.FindStringSubmatch(body)
		if found == nil {
			return list, closeAll, fmt.Errorf("look: the page %q is not read again by itself", path)
		}
		seconds, err := strconv.Atoi(found[1])
		if err != nil {
			return list, closeAll, fmt.Errorf("look: the page %q: %w", path, err)
		}
		w.every = time.Duration(seconds) * time.Second
	}
	return list, closeAll, nil
}

// leave reads the pages again, as their tabs do, until it is over.
func (r *run) leave(ctx context.Context, list []*watcher) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range list {
		group.Go(func() error {
			for wait.For(ctx, w.every) == nil {
				if _, _, err := r.open(ctx, w.of, w.path); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// rest measures what ten consoles cost the database when nothing else happens.
func (r *run) rest(ctx context.Context) (found []Open, err error) {
	if !r.db.SeesBackends(ctx) {
		return nil, errors.New("look: the server's processes are not on this machine: what consoles cost cannot be measured")
	}
	list, closeAll, err := r.watch(ctx)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	before := make([]map[int]time.Duration, len(list))
	for i, w := range list {
		if before[i], err = r.used(ctx, w); err != nil {
			return nil, err
		}
	}
	r.sayf("%d consoles are left open for %s", len(list), r.plan.Rest)
	began := time.Now()
	resting, enough := context.WithTimeout(ctx, r.plan.Rest)
	defer enough()
	if err := r.leave(resting, list); err != nil {
		return nil, err
	}
	for i, w := range list {
		after, err := r.used(ctx, w)
		if err != nil {
			return nil, err
		}
		var used time.Duration
		for pid, cpu := range after {
			used += cpu - before[i][pid]
		}
		found = append(found, Open{w.path, w.every, used.Seconds() / time.Since(began).Seconds()})
	}
	return found, nil
}

// used is the CPU time of the connections of a console so far.
func (r *run) used(ctx context.Context, w *watcher) (map[int]time.Duration, error) {
	pids, err := r.db.Backends(ctx, w.name)
	if err != nil {
		return nil, err
	}
	used := map[int]time.Duration{}
	for _, pid := range pids {
		if used[pid], err = bench.CPUOf([]int{pid}); err != nil {
			return nil, err
		}
	}
	return used, nil
}
