package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
)

// health asks the publisher that runs here, for images that have no other client. It tells what the answer was, and
// whether that is good. Of the configuration it needs http.listen alone.
func (p Program) health(ctx context.Context, args, environ []string, stdout io.Writer) error {
	path := "/readyz?verbose"
	if i := slices.Index(args, "--live"); i >= 0 {
		args, path = slices.Delete(slices.Clone(args), i, i+1), "/livez"
	}
	// What else is wrong, or missing here, says nothing about the publisher that runs.
	values, err := p.set().LoadOne(httpListen, args, environ)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	address := httpListen.Get(values)
	if address == "" {
		return errors.New("http.listen is empty: nobody answers probes")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	url := "http://" + reachable(address) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // the configuration's own
	if err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	// without a proxy: it is this machine
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Do(request) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("ask the publisher: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // the status says what counts, here and below
	_, _ = clean.Writer(stdout).Write(text)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the publisher answered %s", response.Status)
	}
	return nil
}

// reachable is where a client on this machine finds a server that listens at an address: one that listens
// everywhere is also on the loopback interface.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.IsUnspecified() && ip.Is4():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
