package relaytest

import (
	"errors"

	"github.com/posthaste-dev/posthaste/relay"
)

// class is what an error of Publish means to the relay.
type class string

const (
	acknowledged class = "acknowledged"
	rejected     class = "rejected"
	terminal     class = "terminal"
	routeFault   class = "route"
	unknown      class = "unknown"
)

func classOf(err error) class {
	var (
		rejectedError *relay.RejectedError
		terminalError *relay.TerminalError
		routeError    *relay.RouteError
	)
	switch {
	case err == nil:
		return acknowledged
	case errors.As(err, &terminalError):
		return terminal
	case errors.As(err, &rejectedError):
		return rejected
	case errors.As(err, &routeError):
		return routeFault
	default:
		return unknown
	}
}
