package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Listening says where the console listens.
type Listening struct {
	// Address is HOST:PORT. An empty host means 127.0.0.1.
	Address string
	// TLS is what [TLSFiles] returned. Without it only a loopback address is opened.
	TLS *tls.Config
	// AllowPlainHTTP opens another address without TLS, for a proxy that ends TLS itself. Everybody between the two
	// can then read the secrets.
	AllowPlainHTTP bool

	// resolve is the name service of a test.
	resolve func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Listen opens an address on which the mode is safe, or says what to do.
func Listen(ctx context.Context, mode Mode, at Listening) (net.Listener, error) {
	if mode == nil {
		mode = nobody{}
	}
	if at.resolve == nil {
		at.resolve = net.DefaultResolver.LookupNetIP
	}
	address, err := at.address(ctx, mode.Rules().LoopbackOnly)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the console: %w", err)
	}
	if at.TLS != nil {
		return tls.NewListener(listener, at.TLS), nil
	}
	return listener, nil
}

// address is the one to open: an IP where only some addresses are safe, so that a name cannot come to mean another
// one.
func (at Listening) address(ctx context.Context, loopbackOnly bool) (string, error) {
	host, port, err := net.SplitHostPort(at.Address)
	if err != nil {
		return "", fmt.Errorf("address %q of the console: must be HOST:PORT, such as 127.0.0.1:8087", shorten(at.Address))
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ip, err := at.loopback(ctx, host)
	switch {
	case err != nil:
		return "", err
	case ip.IsValid():
		return net.JoinHostPort(ip.String(), port), nil
	case loopbackOnly:
		return "", fmt.Errorf("%s can be reached from other machines, and the console has no users: listen on 127.0.0.1:%s, "+
			"or give --users FILE with --tls-cert and --tls-key", at.Address, port)
	case at.TLS == nil && !at.AllowPlainHTTP:
		return "", fmt.Errorf("%s can be reached from other machines, and secrets would cross the network in plain text: "+
			"give --tls-cert and --tls-key, or listen on 127.0.0.1:%s; --allow-plain-http is for a proxy that ends TLS before "+
			"the console", at.Address, port)
	}
	return at.Address, nil
}

// loopback is the loopback address that a host means, or none where it means others, or others as well.
func (at Listening) loopback(ctx context.Context, host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Unmap().IsLoopback() {
			return ip.Unmap(), nil
		}
		return netip.Addr{}, nil
	}
	addresses, err := at.resolve(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("host %q of the console's address: %w", shorten(host), err)
	}
	if len(addresses) == 0 {
		return netip.Addr{}, fmt.Errorf("host %q of the console's address: has no address", shorten(host))
	}
	for _, ip := range addresses {
		if !ip.Unmap().IsLoopback() {
			return netip.Addr{}, nil
		}
	}
	return addresses[0].Unmap(), nil
}

// ParseNetworks reads --proxy-from: networks, or single addresses, with commas between them.
func ParseNetworks(text string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	var problems []error
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if ip, err := netip.ParseAddr(part); err == nil && ip.Zone() == "" {
			networks = append(networks, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(part)
		if err != nil {
			problems = append(problems, fmt.Errorf("network %q: write it as 10.0.0.0/8, or an address as 10.1.2.3",
				shorten(part)))
			continue
		}
		networks = append(networks, network)
	}
	return networks, errors.Join(problems...)
}
