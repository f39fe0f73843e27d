package access

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// lookEvery is how often a file is looked at, at most.
	lookEvery = 2 * time.Second
	// atOnce is how many passwords are worked on at once, so that guesses cannot use every core.
	atOnce = 2
	// inLine is how many more may wait for that. Whoever comes then is sent away.
	inLine = 32

	basic  = "Basic"
	bearer = "Bearer"
)

// UsersConfig says where the users are.
type UsersConfig struct {
	// File is in JSON:
	//
	//	{"users": [{"name": "oncall@example.com", "role": "operator", "payloads": true, "tenants": ["acme"],
	//	            "outboxes": ["orders"], "secret": "pbkdf2-sha256$600000$..."}],
	//	 "groups": [{"name": "shop-developers", "role": "viewer"}]}
	//
	// A secret is what [HashPassword] or [NewToken] returned for the file. A user without one can come through a
	// [Proxy] only; groups are for a proxy as well. Without tenants or outboxes: all of them.
	//
	// It is read again when it has changed. While it is not in order, or not there, what it said before goes on: take
	// a user out to lock them out, and not the file.
	File string
	// GroupMayRead allows the file's group to read it, as in a pod whose secrets are mounted for a group. Others
	// never may.
	GroupMayRead bool
	// Logger gets a line when the file has changed. Defaults to none.
	Logger *slog.Logger

	// For tests: the clock, and the iterations that a password has at least.
	now        func() time.Time
	iterations int
}

// Users is the mode with names and secrets in a file. Browsers send them as Basic, programs send a token as Bearer.
//
// An address that has sent 10 wrong secrets within a minute gets no answer to another one for a minute. A token
// always works, because nobody can guess one; and so does a password that worked in the last quarter of an hour. So
// the failures of one do not lock out neighbours with the same address who are in already.
type Users struct {
	file     *watched[table]
	attempts *attempts
	proven   *proven
	derive   derive
	slots    chan struct{}
	line     chan struct{}
}

// OpenUsers reads a users file.
func OpenUsers(config UsersConfig) (*Users, error) {
	if config.now == nil {
		config.now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.iterations == 0 {
		config.iterations = iterations
	}
	u := &Users{
		attempts: newAttempts(config.now), proven: newProven(config.now), derive: derivePBKDF2,
		slots: make(chan struct{}, atOnce), line: make(chan struct{}, atOnce+inLine),
	}
	u.file = &watched[table]{
		name: config.File, every: lookEvery, now: config.now, logger: config.Logger,
		read:  func() ([]byte, error) { return readPrivate(config.File, privateTo(config.GroupMayRead)) },
		parse: func(text []byte) (table, error) { return parseUsers(text, config.iterations) },
	}
	if err := u.file.open(); err != nil {
		return nil, fmt.Errorf("users file %s: %w", config.File, err)
	}
	return u, nil
}

var _ Mode = (*Users)(nil)

// Rules are none: [Listen] demands TLS of every mode but [Local].
func (u *Users) Rules() Rules { return Rules{} }

// Authenticate finds the user whose secret a request has.
func (u *Users) Authenticate(r *http.Request) (User, error) {
	given, err := credentialsOf(r)
	if err != nil {
		return User{}, u.wrong(source(r), &Denial{Reason: err.Error(), Challenge: basic})
	}
	users := u.file.get(r.Context())
	switch given.scheme {
	case "":
		return User{}, &Denial{
			Status: http.StatusUnauthorized, Message: "Open the console with your name and secret.", Challenge: basic,
		}
	case bearer:
		if a, ok := users.byToken(tokenSum(given.secret)); ok {
			return a.user, nil
		}
		return User{}, u.wrong(source(r), &Denial{Reason: "the token is wrong", Challenge: bearer})
	default:
		return u.basic(source(r), users, given)
	}
}

// basic finds the user of a name and a secret. What is wrong takes the same work, and gets the same answer, whether
// there is such a user or not.
func (u *Users) basic(from netip.Addr, users *table, given credentials) (User, error) {
	a, known := users.accounts[given.name]
	if known && a.secret.matchesToken(tokenSum(given.secret)) {
		return a.user, nil
	}
	against, possible := a.secret, known && a.secret.isPassword()
	if !possible {
		against = unknownPassword(users.work)
	}
	denial := u.proven.check(u.proven.of(given.name, given.secret, against.text), func() *Denial {
		return u.prove(from, given, against, possible, users.work)
	})
	if denial != nil {
		return User{}, denial
	}
	return a.user, nil
}

// prove compares a password, at the price of an attempt.
func (u *Users) prove(from netip.Addr, given credentials, against stored, possible bool, work int) *Denial {
	if wait := u.attempts.begin(from); wait > 0 {
		return tooMany(wait, given.name)
	}
	select {
	case u.line <- struct{}{}:
		defer func() { <-u.line }()
	default:
		u.attempts.giveBack(from)
		return unprovable()
	}
	u.slots <- struct{}{}
	defer func() { <-u.slots }()
	if matches := against.matchesPassword(given.secret, work, u.derive); !matches || !possible {
		return wrongSecret(&Denial{Reason: "the name or the secret is wrong", Name: given.name, Challenge: basic})
	}
	u.attempts.giveBack(from)
	return nil
}

// wrong uses up an attempt for what was wrong without a proof.
func (u *Users) wrong(from netip.Addr, denial *Denial) *Denial {
	if wait := u.attempts.begin(from); wait > 0 {
		return tooMany(wait, denial.Name)
	}
	return wrongSecret(denial)
}

// wrongSecret is one answer to all that can be wrong.
func wrongSecret(denial *Denial) *Denial {
	denial.Status, denial.Message = http.StatusUnauthorized, "The name or the secret is wrong."
	return denial
}

// unprovable is the answer while more passwords are being sent than can be worked on.
func unprovable() *Denial {
	return &Denial{
		Status: http.StatusServiceUnavailable, Message: "Too many people are signing in. Try again in a moment.",
		Reason: "too many passwords at once", RetryAfter: time.Second,
	}
}

// credentials is what a request has in Authorization.
type credentials struct{ scheme, name, secret string }

// credentialsOf reads Authorization. Without that header there is no scheme. Its errors quote nothing.
func credentialsOf(r *http.Request) (credentials, error) {
	headers := r.Header["Authorization"]
	switch len(headers) {
	case 0:
		return credentials{}, nil
	case 1:
	default:
		return credentials{}, errors.New("there is more than one Authorization header")
	}
	scheme, value, _ := strings.Cut(headers[0], " ")
	switch {
	case strings.EqualFold(scheme, bearer) && value != "" && !strings.ContainsAny(value, " \t"):
		return credentials{scheme: bearer, secret: value}, nil
	case strings.EqualFold(scheme, basic):
		text, err := base64.StdEncoding.DecodeString(value)
		name, secret, both := strings.Cut(string(text), ":")
		if err != nil || !both || name == "" || secret == "" {
			return credentials{}, errors.New("the Basic header has no name and secret")
		}
		return credentials{scheme: basic, name: name, secret: secret}, nil
	default:
		return credentials{}, errors.New("the Authorization header is neither Basic nor Bearer")
	}
}
