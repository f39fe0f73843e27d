package access

import (
	"fmt"
	"strings"
)

// Role is what somebody may do. The zero value is no role, and may do nothing.
type Role int

// The roles. Each may do what the ones before it may. None of them may read payloads: that is [User.Payloads].
const (
	// Viewer sees, and changes nothing.
	Viewer Role = iota + 1
	// Operator decides about events: redrive, discard, pause.
	Operator
	// Admin does what cannot be taken back, and what concerns everybody.
	Admin
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String is the role's name, as in a users file.
func (r Role) String() string {
	if name, ok := roleNames[r]; ok {
		return name
	}
	return "no role"
}

// Valid tells whether this is one of the roles.
func (r Role) Valid() bool { return roleNames[r] != "" }

// ParseRole reads a role's name. With an error comes the zero value, which may do nothing.
func ParseRole(name string) (Role, error) {
	for role, known := range roleNames {
		if name == known {
			return role, nil
		}
	}
	return 0, fmt.Errorf("role %q: must be %s", shorten(name), strings.Join([]string{"viewer", "operator", "admin"}, ", "))
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) {
	if !r.Valid() {
		return nil, fmt.Errorf("role %d: not a role", int(r))
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what [ParseRole] does.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}
