package redisinbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Finding is something about Redis, its client or the configuration that an operator should know before events come.
type Finding struct {
	// Level is slog.LevelWarn for what makes effects happen twice or shows marks to others, slog.LevelInfo for what is
	// good to know.
	Level slog.Level
	// Code names the finding for alerts: may_evict, keep_too_short, not_verified, no_persistence, no_windows,
	// deadlines_ignored, server_unknown.
	Code string
	// Text says what it is and what to do.
	Text string
}

// Check asks Redis and the configuration whether marks live as long as they must. Call it when the program starts, and
// log what it finds; none of it is a reason not to start. An error is an [UnavailableError]: Redis could not be asked.
func (g *Guard) Check(ctx context.Context) ([]Finding, error) {
	findings := slices.Concat(g.checkKeep(), g.checkClient())
	answers, err := g.info(ctx)
	var failure redis.Error
	switch {
	case errors.As(err, &failure):
		findings = append(findings, serverUnknown("Redis answers INFO with "+failure.Error()))
	case err != nil:
		return findings, &UnavailableError{Err: err}
	}
	for _, answer := range answers {
		for _, finding := range checkServer(answer) {
			if !slices.Contains(findings, finding) { // another server of the cluster has it too
				findings = append(findings, finding)
			}
		}
	}
	return findings, nil
}

// checkKeep compares Keep with everything that it must outlive.
func (g *Guard) checkKeep() []Finding {
	c := g.config
	if c.BrokerRetention == 0 && c.OutboxRetention == 0 && c.ReplayHorizon == 0 {
		return []Finding{{
			slog.LevelInfo, "no_windows",
			fmt.Sprintf("a handled event is remembered for %s, and nobody has said for how long a copy of it can come: set "+
				"BrokerRetention, OutboxRetention and ReplayHorizon", c.Keep),
		}}
	}
	const consequence = "a copy that comes later is handled again"
	if c.BrokerRetention < 0 || c.OutboxRetention < 0 || c.ReplayHorizon < 0 {
		return []Finding{{
			slog.LevelWarn, "keep_too_short",
			fmt.Sprintf("a handled event is remembered for %s, and events are kept forever where copies come from: %s", c.Keep,
				consequence),
		}}
	}
	if needed := max(c.BrokerRetention, c.OutboxRetention) + c.ReplayHorizon; c.Keep < needed {
		return []Finding{{
			slog.LevelWarn, "keep_too_short",
			fmt.Sprintf("a handled event is remembered for %s, and a copy of it can come for %s (the longer of broker %s and "+
				"outbox %s, and %s of replay): %s; set Keep to %s or more",
				c.Keep, needed, c.BrokerRetention, c.OutboxRetention, c.ReplayHorizon, consequence, needed),
		}}
	}
	return nil
}

// checkClient looks at how the client talks to Redis.
func (g *Guard) checkClient() (findings []Finding) {
	var addresses []string
	var secure *tls.Config
	var deadlines bool
	switch client := g.client.(type) {
	case *redis.Client:
		options := client.Options()
		secure, deadlines = options.TLSConfig, options.ContextTimeoutEnabled
		if options.Network != "unix" {
			addresses = []string{options.Addr}
		}
	case *redis.ClusterClient:
		options := client.Options()
		addresses, secure, deadlines = options.Addrs, options.TLSConfig, options.ContextTimeoutEnabled
	default:
		return nil // what it does, whoever made it knows
	}
	remote := slices.DeleteFunc(slices.Clone(addresses), onThisMachine)
	if len(remote) > 0 && (secure == nil || secure.InsecureSkipVerify) {
		findings = append(findings, Finding{
			slog.LevelWarn, "not_verified",
			remote[0] + " is not on this machine and the client does not verify that it is the one: whoever is in between " +
				"can read and change marks, and take the password; " +
				"give the client a TLSConfig with the authority of the server",
		})
	}
	if !deadlines {
		findings = append(findings, Finding{
			slog.LevelInfo, "deadlines_ignored",
			"the client does not look at the deadlines of contexts, so a Redis that is silent is waited for until the " +
				"client's own timeouts, several times; set ContextTimeoutEnabled",
		})
	}
	return findings
}

// onThisMachine tells whether an address never leaves this machine. Names are not looked up: what they mean can change.
func onThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// info asks every server that holds marks about itself. CONFIG GET would know more, and is forbidden where Redis is
// rented.
func (g *Guard) info(ctx context.Context) (answers []map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(g.config.Hold, 10*time.Second))
	defer cancel()
	var lock sync.Mutex
	query := func(ctx context.Context, client redis.Cmdable) error {
		memory, err := client.Info(ctx, "memory").Result()
		if err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		persistence, err := client.Info(ctx, "persistence").Result()
		if err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		lock.Lock()
		defer lock.Unlock()
		answers = append(answers, parseInfo(memory+"\n"+persistence))
		return nil
	}
	queryClient := func(ctx context.Context, client *redis.Client) error { return query(ctx, client) }
	switch client := g.client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, queryClient)
	case *redis.Ring:
		err = client.ForEachShard(ctx, queryClient)
	default:
		err = query(ctx, client)
	}
	return answers, err
}

// parseInfo reads the lines of INFO, which are name:value.
func parseInfo(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			values[name] = value
		}
	}
	return values
}

// checkServer checks what a server says of itself.
func checkServer(info map[string]string) (findings []Finding) {
	switch policy := info["maxmemory_policy"]; policy {
	case "noeviction":
	case "":
		findings = append(findings, serverUnknown("Redis does not tell its maxmemory-policy"))
	default:
		findings = append(findings, Finding{
			slog.LevelWarn, "may_evict",
			"Redis forgets marks when its memory is full (maxmemory-policy " + policy +
				"), and their events are handled again; set maxmemory-policy to noeviction, or use a Redis of its own",
		})
	}
	if info["aof_enabled"] == "0" {
		findings = append(findings, Finding{
			slog.LevelInfo, "no_persistence",
			"Redis keeps no append-only file: a restart forgets marks, all of them or those since the last snapshot, and " +
				"copies of their events are handled again; " +
				"set appendonly to yes, or use the inbox in PostgreSQL where that must not be",
		})
	}
	return findings
}

func serverUnknown(why string) Finding {
	return Finding{
		slog.LevelInfo, "server_unknown",
		why + ": see to it that maxmemory-policy is noeviction and that marks survive a restart",
	}
}
