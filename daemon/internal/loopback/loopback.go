// Package loopback tells what never leaves this machine.
package loopback

import (
	"net/netip"
	"strings"
)

// Is tells whether a host is this machine: localhost, or an address of the loopback interface. Other names are
// not looked up: what they mean can change.
func Is(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
