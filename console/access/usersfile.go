package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// table is a users file in use. Nothing in it is changed.
type table struct {
	accounts map[string]account
	// groups are in the file's order: the first that somebody is in counts.
	groups []account
	// work is how many iterations each comparison with a password takes.
	work int
}

// account is a user of the file, or what the members of a group are.
type account struct {
	user   User
	secret stored
}

// entry is a user or a group, as the file has it.
type entry struct {
	Name     string `json:"name"`
	Role     Role   `json:"role"`
	Payloads bool   `json:"payloads"`
	Tenants  names  `json:"tenants"`
	Outboxes names  `json:"outboxes"`
	Secret   string `json:"secret"`
}

// names is a list that has to have something in it: an empty one reads like nothing, and would mean all.
type names []string

func (n *names) UnmarshalJSON(text []byte) error {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return errors.New("must be a list of names")
	}
	if len(list) == 0 {
		return errors.New("an empty list of tenants or outboxes: leave it out for all of them")
	}
	if slices.Contains(list, "") {
		return errors.New("an empty name in a list of tenants or outboxes")
	}
	*n = list
	return nil
}

// parseUsers reads a users file.
func parseUsers(text []byte, atLeast int) (table, error) {
	if err := noKeyTwice(text); err != nil {
		return table{}, err
	}
	var file struct {
		Users  []entry `json:"users"`
		Groups []entry `json:"groups"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return table{}, fmt.Errorf("not a users file: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return table{}, errors.New("not a users file: something follows its end")
	}
	if len(file.Users)+len(file.Groups) == 0 {
		return table{}, errors.New("no users and no groups, so nobody could open the console")
	}
	t := table{accounts: map[string]account{}, work: atLeast}
	return t, errors.Join(t.addUsers(file.Users, atLeast), t.addGroups(file.Groups))
}

func (t *table) addUsers(entries []entry, atLeast int) error {
	var problems []error
	secrets := map[string]bool{}
	for number, e := range entries {
		if err := t.addUser(e, secrets, atLeast); err != nil {
			problems = append(problems, fmt.Errorf("users, entry %d: %w", number+1, err))
		}
	}
	return errors.Join(problems...)
}

func (t *table) addUser(e entry, secrets map[string]bool, atLeast int) error {
	a, err := e.account()
	if err != nil {
		return err
	}
	if _, twice := t.accounts[e.Name]; twice {
		return fmt.Errorf("another user is called %q too", shorten(e.Name))
	}
	if e.Secret != "" {
		if a.secret, err = parseStored(e.Secret, atLeast); err != nil {
			return err
		}
		if secrets[e.Secret] {
			return errors.New("another user has the same secret; make one for each")
		}
		secrets[e.Secret] = true
		t.work = max(t.work, a.secret.iterations)
	}
	t.accounts[e.Name] = a
	return nil
}

func (t *table) addGroups(entries []entry) error {
	var problems []error
	seen := map[string]bool{}
	for number, e := range entries {
		a, err := e.account()
		switch {
		case err != nil:
		case e.Secret != "":
			err = errors.New("a group has no secret: its members come through a proxy")
		case seen[e.Name]:
			err = fmt.Errorf("another group is called %q too", shorten(e.Name))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("groups, entry %d: %w", number+1, err))
			continue
		}
		seen[e.Name] = true
		t.groups = append(t.groups, a)
	}
	return errors.Join(problems...)
}

// account checks what a user and a group have in common.
func (e entry) account() (account, error) {
	if !validName(e.Name) {
		return account{}, fmt.Errorf("name %q: must have between 1 and %d bytes, without spaces around it, colons, commas "+
			"and characters that cannot be seen", shorten(e.Name), longestName)
	}
	if !e.Role.Valid() {
		return account{}, fmt.Errorf("%q has no role: give it viewer, operator or admin", shorten(e.Name))
	}
	return account{user: User{
		Name: e.Name, Role: e.Role, Payloads: e.Payloads, Tenants: e.Tenants, Outboxes: e.Outboxes,
	}}, nil
}

// noKeyTwice finds an object with a key that is there twice: of two roles, the reader of the file sees the first and
// a parser takes the last. Parsers of Go do not look at case, so it counts no difference either.
func noKeyTwice(text []byte) error {
	return walkKeys(json.NewDecoder(bytes.NewReader(text)))
}

// walkKeys looks at the next value, and at all that is in it.
func walkKeys(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("not a users file: %w", err)
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	keys := map[string]bool{}
	for decoder.More() {
		if open == '{' {
			key, err := decoder.Token()
			if err != nil {
				return fmt.Errorf("not a users file: %w", err)
			}
			name := strings.ToLower(strings.ToUpper(fmt.Sprint(key))) // upper first, as one small letter is another's capital
			if keys[name] {
				return fmt.Errorf("%q is there twice in one entry", shorten(name))
			}
			keys[name] = true
		}
		if err := walkKeys(decoder); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil { // the end of this value
		return fmt.Errorf("not a users file: %w", err)
	}
	return nil
}

// byToken finds who has a token. It compares with all of them, whatever it finds.
func (t *table) byToken(sum []byte) (found account, ok bool) {
	for _, a := range t.accounts {
		if a.secret.matchesToken(sum) {
			found, ok = a, true
		}
	}
	return found, ok
}

// byGroup is what a member of some groups is: the first entry of the file that names one of them. Entries are not
// added up, because a role over one tenant and a glance at all would make a role over all.
func (t *table) byGroup(name string, groups []string) (User, bool) {
	for _, a := range t.groups {
		if slices.Contains(groups, a.user.Name) {
			user := a.user
			user.Name = name
			return user, true
		}
	}
	return User{}, false
}
