package settings

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// allowed are the names that insecure.allow may have: those that the marketplace's publisher knows.
var allowed = []string{"database", "nats", "pubsub"}

// AllowsInsecure tells whether something may be reached without verified TLS, by the variable that the publisher has
// for it: POSTHASTE_INSECURE_ALLOW.
func AllowsInsecure(values *config.Values, name string) bool {
	return slices.Contains(daemon.InsecureAllow.Get(values), name)
}

// checkSecure refuses the databases that the publisher would refuse, and names that stand for nothing.
func checkSecure(values *config.Values) (problems []config.Problem) {
	for _, name := range daemon.InsecureAllow.Get(values) {
		if !slices.Contains(allowed, name) {
			problems = append(problems, values.Problem(daemon.InsecureAllow, "%.80q: must be some of %s", name,
				strings.Join(allowed, ", ")))
		}
	}
	for _, key := range []config.Key[config.Hidden]{DatabaseURL, WorkerDatabaseURL} {
		url := key.Get(values).Reveal()
		if url == "" || AllowsInsecure(values, "database") {
			continue
		}
		if err := daemon.CheckDatabaseURL(url); err != nil {
			problems = append(problems, values.Problem(key, "%v", err))
		}
	}
	return problems
}

// checkNATS refuses servers on other machines that are asked for in plain text. It quotes no more than the host.
func checkNATS(values *config.Values) (problems []config.Problem) {
	if AllowsInsecure(values, "nats") {
		return nil
	}
	for server := range strings.SplitSeq(NATSURL.Get(values).Reveal(), ",") {
		if server = strings.TrimSpace(server); !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		address, err := url.Parse(server)
		if err == nil && (address.Scheme == "nats" || address.Scheme == "ws") && address.Host != "" &&
			!OnThisMachine(address.Host) {
			problems = append(problems,
				values.Problem(NATSURL, "%s is not on this machine: write tls://%s; or allow plain text with insecure.allow: nats",
					address.Hostname(), address.Host))
		}
	}
	return problems
}

// OnThisMachine tells it of an address with or without a port. Names are not looked up: what they mean can change.
func OnThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, notIP := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || notIP == nil && ip.Unmap().IsLoopback()
}

// WarnInsecure tells the log what is allowed, as the publisher does at every start.
func WarnInsecure(ctx context.Context, values *config.Values, logger *slog.Logger) {
	for _, name := range daemon.InsecureAllow.Get(values) {
		logger.WarnContext(ctx, "insecure.allow: events and passwords may go over a network in plain text",
			slog.String("name", name))
	}
}
