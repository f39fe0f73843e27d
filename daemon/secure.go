package daemon

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
	"github.com/posthaste-dev/posthaste/internal/suggest"
)

// allowDatabase is the database's name in insecure.allow.
const allowDatabase = "database"

// allowsInsecure tells whether something may be reached without verified TLS.
func allowsInsecure(values *config.Values, name string) bool {
	return slices.Contains(InsecureAllow.Get(values), name)
}

// checkDatabase refuses a URL that would send a password or events over a network where others can read them.
func checkDatabase(values *config.Values, key config.Key[config.Hidden]) []config.Problem {
	url := key.Get(values).Reveal()
	if url == "" || key.Name() == databaseListenURL.Name() && url == "off" {
		return nil
	}
	parsed, err := parseDatabase(values, key)
	if err != nil {
		return []config.Problem{values.Problem(key, "%v", err)}
	}
	if err := verified(parsed); err != nil && !allowsInsecure(values, allowDatabase) {
		return []config.Problem{values.Problem(key, "%v", err)}
	}
	return nil
}

// CheckDatabaseURL refuses a URL as a publisher does unless [InsecureAllow] has "database": one of a server on another
// machine whose name the client would not verify. The error does not quote the URL.
func CheckDatabaseURL(url string) error {
	parsed, err := parseDatabaseURL(url)
	if err != nil {
		return err
	}
	return verified(parsed)
}

// verified says why others could read what is sent to the database.
func verified(parsed *pgconn.Config) error {
	if host := unverified(parsed); host != "" {
		return fmt.Errorf("%s is not on this machine: add sslmode=verify-full, and sslrootcert=FILE for an authority of "+
			"your own; "+
			"or allow plain text with insecure.allow: database", host)
	}
	return nil
}

// unverified finds a host that the client could talk to without having verified that it is this host, in any of its
// attempts.
func unverified(parsed *pgconn.Config) string {
	attempts := []*pgconn.FallbackConfig{{Host: parsed.Host, TLSConfig: parsed.TLSConfig}}
	for _, attempt := range append(attempts, parsed.Fallbacks...) {
		if !filepath.IsAbs(attempt.Host) && !loopback.Is(attempt.Host) && !verifies(attempt.TLSConfig) {
			return attempt.Host
		}
	}
	return ""
}

// verifies tells whether the name in the certificate is looked at. What verify-ca sets does not.
func verifies(config *tls.Config) bool { return config != nil && !config.InsecureSkipVerify }

// checkAllowed refuses names that stand for nothing.
func (p Program) checkAllowed(values *config.Values) (problems []config.Problem) {
	names := append([]string{allowDatabase}, p.brokerNames()...)
	if p.Tracing != nil {
		names = append(names, allowTracing)
	}
	for _, name := range InsecureAllow.Get(values) {
		if !slices.Contains(names, name) {
			problems = append(problems, values.Problem(InsecureAllow, "%.80q: must be some of %s%s", name,
				strings.Join(names, ", "), suggest.DidYouMean(name, names)))
		}
	}
	return problems
}
