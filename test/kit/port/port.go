// Package port gives ports to servers of a test's or proof's own, each to one process alone.
package port

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// The ports below those that the system gives to outgoing connections: while a server is down, a client that
// tries one of those again and again gets connected to itself in the end.
const first, last = 20_000, 32_000

// Free chooses a port of the loopback address on which nobody listens. No other process that asks here gets it for as
// long as this one lives, also while its server is down.
func Free() (int, error) { return free(first, last) }

// Address is a free port as host:port.
func Address() (string, error) {
	port, err := Free()
	return address(port), err
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// free looks at every port of a range, from a random one on.
func free(first, last int) (int, error) {
	for _, offset := range rand.Perm(last - first) {
		if claimed, ok := claim(first + offset); ok {
			claims.keep(claimed)
			return first + offset, nil
		}
	}
	return 0, errNone
}

// Shift chooses a number that added to each of these ports gives one as [Free] does, for servers whose ports are moved
// together.
func Shift(ports ...int) (int, error) { return shift(first, last, ports) }

func shift(first, last int, ports []int) (int, error) {
	least, most := first-slices.Min(ports), last-slices.Max(ports)
	if most <= least {
		return 0, errNone
	}
next:
	for _, offset := range rand.Perm(most - least) {
		var all []net.Listener
		for _, port := range ports {
			claimed, ok := claim(port + least + offset)
			if !ok {
				for _, other := range all {
					_ = other.Close()
				}
				continue next
			}
			all = append(all, claimed)
		}
		claims.keep(all...)
		return least + offset, nil
	}
	return 0, errNone
}

var errNone = errors.New("port: none is free")

// claim takes a port, if nobody has it.
func claim(port int) (net.Listener, bool) {
	claimed, err := listen("unix", fmt.Sprint("@posthaste-port-", port))
	if err != nil {
		return nil, false // another process has it, or this one
	}
	if !isFree(port) {
		_ = claimed.Close()
		return nil, false // somebody is there who does not ask
	}
	return claimed, true
}

// isFree tells whether nobody listens at a port. A process that is started meanwhile would have the socket for a moment
// longer than this one, from its fork until it runs its program, and whoever listens next would find the port in use.
func isFree(port int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	listener, err := listen("tcp", address(port))
	if err != nil {
		return false
	}
	_ = listener.Close() // of no consequence
	return true
}

func listen(network, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), network, address)
}

// claims are the ports that this process has. A claim is a socket whose name is in no folder: the system takes it back
// when the process dies, however that dies, and nothing is left behind. It is where the ports are, too: processes with
// a network of their own do not get into each other's way.
var claims claimed

type claimed struct {
	mutex sync.Mutex
	all   []net.Listener // which would be closed if nobody had them
}

func (c *claimed) keep(claims ...net.Listener) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.all = append(c.all, claims...)
}
