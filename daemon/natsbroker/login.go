package natsbroker

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// split takes the user out of the servers' names: the client asks for him at every connect.
func split(servers string) (without string, user *url.Userinfo, err error) {
	var addresses []string
	for server := range strings.SplitSeq(servers, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		address, err := url.Parse(server)
		if err != nil || address.Hostname() == "" {
			return "", nil, errors.New("a server must be a URL such as tls://nats.example.com:4222") // the error quotes
		}
		if user != nil && address.User != nil && user.String() != address.User.String() {
			return "", nil, errors.New("all servers must have the same user and password")
		}
		if address.User != nil {
			user = address.User
		}
		address.User = nil
		addresses = append(addresses, address.String())
	}
	return strings.Join(addresses, ","), user, nil
}

// login is the user that nats.url names, read anew at every connect.
type login struct {
	values *config.Values
	logger *slog.Logger

	mutex  sync.Mutex
	user   *url.Userinfo // the last that could be read
	saidAt time.Time
}

func (l *login) options(ctx context.Context) []nats.Option {
	return []nats.Option{
		nats.UserInfoHandler(func() (string, string) {
			user := l.current(ctx)
			password, has := user.Password()
			if !has {
				return "", ""
			}
			return user.Username(), password
		}),
		nats.TokenHandler(func() string { // a user without a password is a token, as the client has it
			user := l.current(ctx)
			if _, has := user.Password(); has {
				return ""
			}
			return user.Username()
		}),
	}
}

// current reads the file. One that is missing or half written leaves what it held before.
func (l *login) current(ctx context.Context) *url.Userinfo {
	var user *url.Userinfo
	servers, err := l.values.Current(serverURL)
	if err == nil {
		_, user, err = split(servers.Reveal())
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err == nil {
		l.user = user
	} else if time.Since(l.saidAt) >= sayPeriod {
		l.saidAt = time.Now()
		l.logger.WarnContext(ctx, "the credentials of NATS cannot be read again: the last ones stay in use",
			slog.String("error", err.Error()))
	}
	return l.user
}
