package main

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
)

// ways are proxies in front of the database and the broker, where there can be some.
type ways struct {
	producers, relays, broker *proxy.Proxy
	// without says what is left out, and why.
	without []string
}

func openWays(s settings, w *where) (_ *ways, err error) {
	ways := &ways{}
	defer func() {
		if err != nil {
			ways.close()
		}
	}()
	if !w.direct {
		ways.without = append(ways.without, "cut or stall connections to the database: its address is a socket, several "+
			"hosts, or demands a certificate with its name")
	} else {
		at, _ := url.Parse(s.postgres) // look has
		server := net.JoinHostPort(w.host, cmp.Or(at.Port(), "5432"))
		if ways.producers, err = proxy.Listen(server); err != nil {
			return nil, err
		}
		if ways.relays, err = proxy.Listen(server); err != nil {
			return nil, err
		}
	}
	if !w.brokerDirect {
		ways.without = append(ways.without,
			"cut or stall connections to the broker: that would need a plain connection on this machine")
		return ways, nil
	}
	at, _ := url.Parse(s.broker)
	ways.broker, err = proxy.Listen(cmp.Or(at.Query().Get("emulator"),
		net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), "4222"))))
	return ways, err
}

func (w *ways) close() {
	for _, p := range []*proxy.Proxy{w.producers, w.relays, w.broker} {
		if p != nil {
			p.Close()
		}
	}
}

// plan is the run.
func (w *ways) plan(s settings, folder string) (torture.Plan, error) {
	executable, err := os.Executable()
	if err != nil {
		return torture.Plan{}, fmt.Errorf("which program this is: %w", err)
	}
	run := torture.NewRun()
	plan := torture.Plan{
		Name: "outbox-torture", Run: run, Postgres: s.postgres, Broker: s.broker, BrokerVia: w.brokerVia(s), Folder: folder,
		Executable: executable,
		Relays:     s.relays, Producers: s.producers, Aggregates: max(50, s.rate),
		Events:     max(1, int(s.duration.Seconds()*float64(s.rate))),
		Production: s.duration, Lease: s.lease, Drain: 2 * time.Minute, Seed: s.seed, LostAcks: 20, Duplicates: 1,
		Mutant:   s.mutant,
		Unsteady: true, Quiet: !s.verbose,
	}
	if plan.ProducersVia, err = named(s.postgres, run, w.producers); err != nil {
		return plan, err
	}
	if plan.RelaysVia, err = named(s.postgres, run, w.relays); err != nil {
		return plan, err
	}
	plan.Schedule = w.schedule(s, run)
	return plan, nil
}

// named leads to the database through a proxy, if there is one, under a name by which sessions are found.
func named(postgres, application string, through *proxy.Proxy) (string, error) {
	at, err := url.Parse(postgres)
	if err != nil {
		return "", fmt.Errorf("-postgres: %w", err)
	}
	if through != nil {
		at.Host = through.Addr()
	}
	query := at.Query()
	query.Set("application_name", application)
	at.RawQuery = query.Encode()
	return at.String(), nil
}

func (w *ways) brokerVia(s settings) string {
	if w.broker == nil {
		return ""
	}
	at, _ := url.Parse(s.broker) // look has
	if query := at.Query(); query.Has("emulator") {
		query.Set("emulator", w.broker.Addr())
		at.RawQuery = query.Encode()
	} else {
		at.Host = w.broker.Addr()
	}
	return at.String()
}

// schedule is every fault that needs no power over the servers.
func (w *ways) schedule(s settings, application string) []torture.Fault {
	minutes := s.duration.Minutes()
	least := func(inAMinute float64) int { return int(inAMinute * minutes) }
	every := func(length time.Duration) time.Duration { return min(length, s.duration/4) }
	pause := s.lease + time.Second // what one takes
	faults := []torture.Fault{
		torture.Kills(every(4*time.Second), max(1, least(4))),
		torture.Leaves(every(15*time.Second), least(1)),
		torture.Pauses(every(3*pause), least(1)),
		torture.Outages(every(12*time.Second), least(2)),
		torture.Terminations(application, every(time.Second), max(1, least(20))),
		torture.Cancellations(application, every(time.Second), least(2)),
		torture.OpenTransactions(3*time.Second, every(12*time.Second), least(1)),
	}
	if w.relays != nil {
		faults = append(
			faults,
			torture.Cuts(w.producers, "a producer's", every(3*time.Second), least(2)),
			torture.Cuts(w.relays, "a relay's", every(3*time.Second), least(2)),
			torture.Stalls(w.producers, "a producer's", s.lease, every(15*time.Second), least(0.5)),
			torture.Stalls(w.relays, "a relay's", s.lease, every(15*time.Second), least(0.5)),
		)
	}
	if w.broker != nil {
		faults = append(
			faults,
			torture.BrokerCuts(w.broker, every(9*time.Second), least(1)),
			torture.BrokerStalls(w.broker, s.lease/2, every(20*time.Second), least(0.5)),
			torture.SlowBroker(w.broker, 100*time.Millisecond, time.Second, every(15*time.Second), least(0.5)),
		)
	}
	return faults
}
