package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/cmd/internal/program"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
)

// checkBroker asks the brokers of outbox-publisher.
func (c *doctorCommand) checkBroker(ctx context.Context, environ, args []string, report *doctor.Report) error {
	findings, err := program.New("").Diagnose(ctx, args, environ)
	if err != nil {
		return err
	}
	for _, found := range findings {
		finding := doctor.New(found.Code, found.Broker+": "+found.Text)
		finding.Fix, finding.Advice = found.Fix, found.Advice
		if found.Fix != "" {
			finding.FixWith, finding.Advice = doctor.WithCommand, ""
		}
		report.Findings = append(report.Findings, finding)
	}
	return nil
}

// redisCodes are the findings of the inbox's own check that are about the server.
var redisCodes = map[string]string{
	"may_evict": "redis_may_evict", "no_persistence": "redis_no_persistence", "not_verified": "redis_not_verified",
	"server_unknown": "redis_unknown",
}

// redisOptions reads the URL of the Redis of consumers; nil: there is none. What would send the password over a network
// in plain text is rejected before it is used, as outbox-publisher does it with its servers.
func (c *doctorCommand) redisOptions(address string) (*redis.Options, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // as said
	}
	options, err := redis.ParseURL(address)
	if err != nil { // it may quote the password
		return nil, usageError{
			"POSTHASTE_REDIS_URL, or --redis-url, must be a URL like redis://127.0.0.1:6379/0 or rediss://...",
		}
	}
	options.ContextTimeoutEnabled = true
	host, port, err := net.SplitHostPort(options.Addr)
	verified := options.TLSConfig != nil && !options.TLSConfig.InsecureSkipVerify
	if options.Network == "unix" || err == nil && onThisMachine(host) || verified ||
		slices.Contains(c.root.insecureAllow, allowRedis) {
		return options, nil
	}
	return nil, usageError{fmt.Sprintf("the Redis URL: %s is not on this machine: write rediss://%s, without "+
		"skip_verify; or allow plain text with --insecure-allow redis", host, net.JoinHostPort(host, port))}
}

// allowRedis is the name of Redis for --insecure-allow. outbox-publisher, which has no Redis, does not know it.
const allowRedis = "redis"

// onThisMachine tells whether a host is this machine. Names are not looked up: what they mean can change.
func onThisMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// checkRedis asks the Redis of consumers whether it keeps what they mark there.
func (c *doctorCommand) checkRedis(ctx context.Context, options *redis.Options, report *doctor.Report) error {
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	guard, err := redisinbox.New(client, redisinbox.Config{})
	if err != nil {
		return err
	}
	findings, err := guard.Check(ctx)
	if err != nil {
		finding := doctor.New("redis_unreachable", fmt.Sprintf("%s: %v", options.Addr, err))
		finding.Advice = "is it up, and are address, user and password right?"
		report.Findings = append(report.Findings, finding)
	}
	for _, found := range findings {
		code := redisCodes[found.Code]
		if code == "" {
			continue // about a guard, and this is none
		}
		finding := doctor.New(code, found.Text)
		finding.Advice = "the text says what to do"
		switch code {
		case "redis_may_evict":
			finding.Fix = redisCLI(options) + " CONFIG SET maxmemory-policy noeviction"
		case "redis_no_persistence":
			finding.Fix = redisCLI(options) + " CONFIG SET appendonly yes"
		}
		if finding.Fix != "" {
			finding.FixWith, finding.Advice = doctor.WithCommand, ""
		}
		report.Findings = append(report.Findings, finding)
	}
	return nil
}

// redisCLI is how a person gets there. It asks for a password.
func redisCLI(options *redis.Options) string {
	words := []string{"redis-cli"}
	if host, port, err := net.SplitHostPort(options.Addr); err == nil && options.Network != "unix" {
		words = append(words, "-h", shell.Word(host), "-p", shell.Word(port))
	} else {
		words = append(words, "-s", shell.Word(options.Addr))
	}
	if options.TLSConfig != nil {
		words = append(words, "--tls")
	}
	if options.Username != "" {
		words = append(words, "--user", shell.Word(options.Username))
	}
	if options.Password != "" {
		words = append(words, "--askpass")
	}
	return strings.Join(words, " ")
}
