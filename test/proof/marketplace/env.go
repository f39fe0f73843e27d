package marketplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

const (
	project = "proof"
	stream  = "marketplace"
	// ackWait is how soon NATS delivers a message again whose worker died; setup's half a minute is for machines that
	// stall.
	ackWait = 3 * time.Second
	// duplicateWindow is the shortest that JetStream takes: it shall not hide from the inboxes what a dead publisher sent
	// twice.
	duplicateWindow = 100 * time.Millisecond
)

// topics are the marketplace's, and where its dead letters go: what arrives there is seen as well.
var topics = []string{"pf-domain-events", "analytics", "notifications", "billing", "pf-domain-events-dead"}

// env is a database, a broker and a Redis that only one round uses, with the witnesses on them.
type env struct {
	folder string
	// environment is that of all programs.
	environment []string

	pool     *pgxpool.Pool
	drop     func() error
	redis    *redis.Client
	recorder *torture.Recorder
	nats     jetstream.JetStream // nil for Pub/Sub
	stats    string              // of the emulator; empty for NATS

	servers []*server.Server
	conn    *nats.Conn
}

// newEnv starts the servers, has the marketplace set them up, and installs the witnesses.
func newEnv(ctx context.Context, plan Plan, broker, inbox, folder string) (_ *env, err error) {
	h := &env{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	database, drop, err := publisher.Scratch(ctx, plan.Postgres, "proof_marketplace")
	if err != nil {
		return nil, err
	}
	h.drop = drop
	if h.pool, err = pgxpool.New(ctx, database); err != nil {
		return nil, fmt.Errorf("marketplace proof: %w", err)
	}
	address, err := h.startServers(ctx, plan, broker)
	if err != nil {
		return nil, err
	}
	h.environment = append(h.environment, "POSTHASTE_DATABASE_URL="+database, "MARKETPLACE_INBOX_STORE="+inbox,
		"HOME="+folder)
	if h.recorder, err = torture.OpenRecorder(ctx, address, stream, topics); err != nil {
		return nil, err
	}
	return h, h.setUp(ctx, plan)
}

// startServers returns the broker's address for the eye.
func (h *env) startServers(ctx context.Context, plan Plan, broker string) (address string, err error) {
	memory, err := server.NewRedis(h.folder, "--maxmemory-policy", "noeviction")
	if err != nil {
		return "", err
	}
	var queue *server.Server
	if broker == chaos.PubSub {
		var stats string
		if queue, stats, err = server.NewEmulator(h.folder, plan.Executable); err != nil {
			return "", err
		}
		h.stats, address = stats, "pubsub://"+project+"?emulator="+queue.Address
		h.environment = []string{
			"POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=" + project, "POSTHASTE_PUBSUB_ENDPOINT=" + queue.Address,
		}
	} else {
		if queue, err = server.NewNATS(h.folder); err != nil {
			return "", err
		}
		address = "nats://" + queue.Address
		h.environment = []string{"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=" + address, "POSTHASTE_NATS_STREAM=" + stream}
	}
	for _, s := range []*server.Server{queue, memory} {
		if err := s.Start(ctx); err != nil {
			return "", err
		}
		h.servers = append(h.servers, s)
	}
	h.environment = append(h.environment, "MARKETPLACE_REDIS_URL=redis://"+memory.Address)
	h.redis = redis.NewClient(&redis.Options{Addr: memory.Address})
	if broker != chaos.PubSub {
		if h.conn, err = nats.Connect(address, nats.Timeout(startTime)); err == nil {
			h.nats, err = jetstream.New(h.conn, jetstream.WithDefaultTimeout(startTime))
		}
		if err != nil {
			return "", fmt.Errorf("marketplace proof: %w", err)
		}
	}
	return address, nil
}

// setUp runs the marketplace's setup, and then what the proof needs beside it.
func (h *env) setUp(ctx context.Context, plan Plan) error {
	setup := exec.CommandContext(ctx, filepath.Join(plan.Programs, "setup"))
	setup.Env = h.environment
	if said, err := setup.CombinedOutput(); err != nil {
		return fmt.Errorf("marketplace proof: setup: %w: %s", err, said)
	}
	if _, err := h.pool.Exec(ctx, witness); err != nil {
		return fmt.Errorf("marketplace proof: install the witnesses: %w", err)
	}
	if h.nats == nil {
		return nil
	}
	made, err := h.nats.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("marketplace proof: %w", err)
	}
	config := made.CachedInfo().Config
	config.Duplicates = duplicateWindow
	if _, err := h.nats.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("marketplace proof: %w", err)
	}
	for consumer := range made.ListConsumers(ctx).Info() {
		consumer.Config.AckWait = ackWait
		if _, err := made.UpdateConsumer(ctx, consumer.Config); err != nil {
			return fmt.Errorf("marketplace proof: %w", err)
		}
	}
	return nil
}

// waiting is how many messages the consumers have still to acknowledge: for Pub/Sub the most of one subscription.
func (h *env) waiting(ctx context.Context) (n int, err error) {
	if h.nats == nil {
		return h.emulated(ctx)
	}
	made, err := h.nats.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("marketplace proof: %w", err)
	}
	consumers := made.ListConsumers(ctx)
	for consumer := range consumers.Info() {
		n += int(consumer.NumPending) + consumer.NumAckPending
	}
	if err := consumers.Err(); err != nil {
		return 0, fmt.Errorf("marketplace proof: %w", err)
	}
	return n, nil
}

func (h *env) emulated(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.stats+"/stats", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("marketplace proof: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("marketplace proof: %w", err)
	}
	defer response.Body.Close()
	var stats pubsubemulator.Stats
	if err := json.NewDecoder(response.Body).Decode(&stats); err != nil {
		return 0, fmt.Errorf("marketplace proof: %w", err)
	}
	return stats.Waiting, nil
}

// count counts rows.
func (h *env) count(ctx context.Context, query string, args ...any) (n int, err error) {
	if err := h.pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("marketplace proof: %w", err)
	}
	return n, nil
}

func (h *env) close() error {
	var problems []error
	if h.redis != nil {
		problems = append(problems, h.redis.Close())
	}
	if h.conn != nil {
		h.conn.Close()
	}
	if h.recorder != nil {
		problems = append(problems, h.recorder.Close())
	}
	for _, s := range h.servers {
		s.Close()
	}
	if h.pool != nil {
		h.pool.Close()
	}
	if h.drop != nil {
		problems = append(problems, h.drop())
	}
	return errors.Join(problems...)
}
