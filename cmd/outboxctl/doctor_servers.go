package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/cmd/internal/program"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
)

// checkBroker asks the broker of outbox-publisher.
func (c *doctorCommand) checkBroker(ctx context.Context, environ, args []string, report *doctor.Report) error {
	name, findings, err := program.New("").Diagnose(ctx, args, environ)
	if err != nil {
		return err
	}
	for _, found := range findings {
		finding := doctor.New(found.Code, name+": "+found.Text)
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

// checkRedis asks the Redis of consumers whether it keeps what they mark there.
func (c *doctorCommand) checkRedis(ctx context.Context, address string, report *doctor.Report) error {
	options, err := redis.ParseURL(address)
	if err != nil { // it may quote the password
		return usageError{"POSTHASTE_REDIS_URL, or --redis-url, must be a URL like redis://127.0.0.1:6379/0 or rediss://..."}
	}
	options.ContextTimeoutEnabled = true
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
		words = append(words, "-h", doctor.Quote(host), "-p", doctor.Quote(port))
	} else {
		words = append(words, "-s", doctor.Quote(options.Addr))
	}
	if options.TLSConfig != nil {
		words = append(words, "--tls")
	}
	if options.Username != "" {
		words = append(words, "--user", doctor.Quote(options.Username))
	}
	if options.Password != "" {
		words = append(words, "--askpass")
	}
	return strings.Join(words, " ")
}
