package access

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// local lets everybody in who is on this machine.
type local struct{ user User }

// Local is the mode without secrets: whoever can connect is this user. It is for one person on their own machine, and
// [Listen] opens nothing but a loopback address for it.
//
// A page of another site can reach a server on the visitor's machine through a name of its own (DNS rebinding), so
// the Host of a request must be a loopback name or address. A request that went through a proxy is from somebody
// else, so it is denied as well.
func Local(user User) Mode {
	if user.Name == "" {
		user.Name = "local"
	}
	return local{user}
}

func (m local) Rules() Rules { return Rules{LoopbackOnly: true} }

func (m local) Authenticate(r *http.Request) (User, error) {
	switch {
	case !remote(r).IsLoopback():
		return User{}, localDenial(
			"The console is open to this machine only. Start it with a users file to open it to others.",
			"the sender is on another machine, and there is no users file")
	case !loopbackHost(r.Host):
		return User{}, localDenial("Open the console as localhost, 127.0.0.1 or [::1].", "the Host is no loopback name")
	case proxied(r):
		return User{}, localDenial("The request came through a proxy. Start the console with --proxy-from and a users file.",
			"the request came through a proxy, and there is no users file")
	}
	return m.user, nil
}

func localDenial(message, reason string) *Denial {
	return &Denial{Status: http.StatusForbidden, Message: message, Reason: reason}
}

// proxied tells whether a proxy says that it passed a request on for somebody else.
func proxied(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	return false
}

// loopbackHost tells whether a Host header can mean nothing but this machine. Names are not looked up: who serves the
// name decides what it means.
func loopbackHost(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
