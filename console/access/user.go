package access

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// User is somebody who was let in. The zero value may do nothing.
type User struct {
	// Name is the actor in the log of actions.
	Name string
	Role Role
	// Payloads is the right to read payloads, which no role brings along.
	Payloads bool
	// Tenants are the only tenants whose events the user may see. Empty: all.
	Tenants []string
	// Outboxes are the only outboxes that the user may see. Empty: all.
	Outboxes []string
}

// Can tells whether the user's role reaches this one. Nobody reaches what is not a role.
func (u User) Can(role Role) bool { return u.Role.Valid() && role.Valid() && u.Role >= role }

// MaySee tells whether the user may see an outbox.
func (u User) MaySee(outbox string) bool { return u.Role.Valid() && among(outbox, u.Outboxes) }

// MaySeeTenant tells whether the user may see events of a tenant. Somebody who is bound to tenants does not see
// events that have none.
func (u User) MaySeeTenant(tenant string) bool { return u.Role.Valid() && among(tenant, u.Tenants) }

// among tells whether a name is in a list, of which an empty one means all.
func among(name string, list []string) bool { return len(list) == 0 || slices.Contains(list, name) }

type userKey struct{}

// With is a context in which a user was let in. [Middleware] makes one; a server that has users of its own does so
// instead.
func With(ctx context.Context, user User) context.Context {
	user.Tenants, user.Outboxes = slices.Clone(user.Tenants), slices.Clone(user.Outboxes)
	return context.WithValue(ctx, userKey{}, user)
}

// From is the user who was let in, if anybody was.
func From(ctx context.Context) (User, bool) {
	user, ok := ctx.Value(userKey{}).(User)
	if !ok || !user.Role.Valid() {
		return User{}, false
	}
	return user, true
}

const (
	// longestName is the longest name of a user, in bytes: the log of actions has room for no more.
	longestName = 256
	// longestShown bounds what somebody typed, in characters, before it gets into a log or a message.
	longestShown = 64
)

// validName tells whether a name can be one of a user: short enough for the log of actions, without what hides
// itself, without the colon that ends a name in Basic, and without the comma with which proxies join several values.
func validName(name string) bool {
	return name != "" && len(name) <= longestName && name == strings.TrimSpace(name) && utf8.ValidString(name) &&
		!strings.ContainsAny(name, ":,") && !strings.ContainsFunc(name, hidden)
}

// hidden tells whether a character is invisible, or controls a terminal.
func hidden(r rune) bool { return !unicode.IsPrint(r) }

// shorten makes what somebody typed fit for a log or a message.
func shorten(typed string) string {
	short := make([]rune, 0, longestShown)
	for _, r := range typed {
		if len(short) == longestShown {
			break
		}
		if hidden(r) {
			r = utf8.RuneError
		}
		short = append(short, r)
	}
	return string(short)
}
