package pgstore

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const tcpUserTimeout = 0x12

// setUserTimeout bounds how long sent data may stay unacknowledged. Keep-alives do not: they are not sent
// while data is on its way.
func setUserTimeout(socket uintptr, bound time.Duration) {
	_ = syscall.SetsockoptInt(int(socket), syscall.IPPROTO_TCP, tcpUserTimeout, int(bound.Milliseconds()))
}
