package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

// Settings are what a program asks people for that serves a console: who may open it, and where.
type Settings struct {
	// Listen is HOST:PORT; see [Listening].
	Listen string
	// Local is whoever is on this machine, where there is no file of users. A zero role lets nobody in.
	Local User
	// Users is a file of users; see [UsersConfig].
	Users string
	// ProxyFrom are the networks of a proxy that says who somebody is, with commas, ProxySecretFile has what it proves
	// itself with; see [ProxyConfig].
	ProxyFrom, ProxySecretFile string
	// TLSCert and TLSKey are files with the certificate and its key.
	TLSCert, TLSKey string
	// AllowPlainHTTP opens another address without TLS, for a proxy that ends TLS itself.
	AllowPlainHTTP bool
	// GroupMayRead allows the group of the files with secrets to read them, as in a pod.
	GroupMayRead bool
}

// A Door is an open address, with who may come in.
type Door struct {
	listener net.Listener
	mode     Mode
	// Address is where a browser finds it.
	Address string
}

// Mode is who may open the console by these settings.
func (s Settings) Mode(logger *slog.Logger) (Mode, error) {
	if s.Users == "" {
		switch {
		case s.ProxyFrom != "" || s.ProxySecretFile != "":
			return nil, errors.New("a proxy needs a users file, which has the roles of the users")
		case !s.Local.Role.Valid():
			return nil, errors.New("there is neither a users file nor a role for whoever is on this machine")
		}
		return Local(s.Local), nil
	}
	users, err := OpenUsers(UsersConfig{File: s.Users, GroupMayRead: s.GroupMayRead, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("the users file: %w", err)
	}
	if s.ProxyFrom == "" {
		if s.ProxySecretFile != "" {
			return nil, errors.New("a proxy's secret needs the proxy's networks as well")
		}
		return users, nil
	}
	return s.proxy(users)
}

func (s Settings) proxy(users *Users) (Mode, error) {
	config := ProxyConfig{Users: users}
	var err error
	if config.From, err = ParseNetworks(s.ProxyFrom); err != nil {
		return nil, err
	}
	if s.ProxySecretFile != "" {
		if config.Secret, err = ReadSecret(s.ProxySecretFile, s.GroupMayRead); err != nil {
			return nil, fmt.Errorf("the proxy's secret: %w", err)
		}
	}
	return NewProxy(config)
}

// Open opens the address for those who may come in, or says what to do.
func (s Settings) Open(ctx context.Context, logger *slog.Logger) (*Door, error) {
	mode, err := s.Mode(logger)
	if err != nil {
		return nil, err
	}
	var secured *tls.Config
	if s.TLSCert != "" || s.TLSKey != "" {
		secured, err = TLSFiles(s.TLSCert, s.TLSKey, logger) //nolint:contextcheck // handshakes come later
		if err != nil {
			return nil, err
		}
	}
	listener, err := Listen(ctx, mode, Listening{Address: s.Listen, TLS: secured, AllowPlainHTTP: s.AllowPlainHTTP})
	if err != nil {
		return nil, err
	}
	door := &Door{listener: listener, mode: mode, Address: "http://" + listener.Addr().String()}
	if secured != nil {
		door.Address = "https://" + listener.Addr().String()
	}
	return door, nil
}

// Serve answers until the context ends; see [Serve].
func (d *Door) Serve(ctx context.Context, handler http.Handler, logger *slog.Logger) error {
	return Serve(ctx, d.listener, Middleware(d.mode, Options{Logger: logger})(handler), logger)
}

// Close closes a door at which nobody serves.
func (d *Door) Close() error { return d.listener.Close() } //nolint:wrapcheck // it says what went wrong
