package access

import (
	"net/http"
	"net/netip"
	"time"
)

// Mode says who sent a request.
type Mode interface {
	// Authenticate returns a user with a role, or an error. A [*Denial] says what to answer; any other error is
	// answered with 403.
	Authenticate(r *http.Request) (User, error)
	// Rules says what the mode needs to be safe.
	Rules() Rules
}

// Rules are what a mode needs to be safe.
type Rules struct {
	// LoopbackOnly: whoever can connect is let in, so nobody on another machine may.
	LoopbackOnly bool
	// SecretHeaders have secrets, and are taken out of a request when its sender is known. Authorization always is.
	SecretHeaders []string
}

// Denial is why somebody was not let in.
type Denial struct { //nolint:errname // an answer first: Denied writes it
	// Status is that of the answer, and Message its text.
	Status  int
	Message string
	// Reason is for the log. Empty: nothing went wrong, as where a browser has not been asked for a secret yet.
	Reason string
	// Name is what the sender called themselves. It is cut and cleaned before it is logged.
	Name string
	// Challenge is the scheme to ask for, such as Basic. Empty: no secret would help.
	Challenge string
	// RetryAfter is when another attempt makes sense.
	RetryAfter time.Duration
}

// Error is the reason.
func (d *Denial) Error() string {
	if d.Reason != "" {
		return d.Reason
	}
	return d.Message
}

// remote is the address on the other side of the connection, as the network has it. The zero value is no address.
func remote(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// nobody lets nobody in. It stands where no mode was given.
type nobody struct{}

func (nobody) Authenticate(*http.Request) (User, error) {
	return User{}, &Denial{
		Status: http.StatusForbidden, Message: "The console was set up without users.", Reason: "no mode of access is set",
	}
}

func (nobody) Rules() Rules { return Rules{LoopbackOnly: true} }
