package access

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRoleIsDeniedByDefault(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Viewer", "viewer ", "root", "no role", "3"} {
		if role, err := ParseRole(name); err == nil || role.Valid() || role != 0 {
			t.Errorf("ParseRole(%q) = %v, %v", name, role, err)
		}
	}
	var nobody User
	if nobody.Can(Viewer) || nobody.Can(0) || nobody.MaySee("orders") || nobody.MaySeeTenant("acme") {
		t.Error("the zero user may do something")
	}
	admin := User{Role: Admin}
	if admin.Can(0) || admin.Can(4) || (User{Role: 4}).Can(Viewer) || (User{Role: -1}).Can(-2) {
		t.Error("what is no role is reached")
	}
	if _, err := json.Marshal(Role(0)); err == nil {
		t.Error("no role was written as one")
	}
}

func TestRolesAreOrdered(t *testing.T) {
	t.Parallel()
	roles := []Role{Viewer, Operator, Admin}
	for i, has := range roles {
		parsed, err := ParseRole(has.String())
		if err != nil || parsed != has {
			t.Errorf("ParseRole(%q) = %v, %v", has, parsed, err)
		}
		for j, needs := range roles {
			if got := (User{Role: has}).Can(needs); got != (i >= j) {
				t.Errorf("%v can %v: %v", has, needs, got)
			}
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	all := User{Role: Viewer}
	bound := User{Role: Viewer, Outboxes: []string{"orders"}, Tenants: []string{"acme"}}
	if !all.MaySee("orders") || !all.MaySee("") || !all.MaySeeTenant("acme") || !all.MaySeeTenant("") {
		t.Error("without a list somebody does not see all")
	}
	if !bound.MaySee("orders") || bound.MaySee("order") || bound.MaySee("Orders") || bound.MaySee("") {
		t.Error("the list of outboxes does not bind")
	}
	if !bound.MaySeeTenant("acme") || bound.MaySeeTenant("acme2") || bound.MaySeeTenant("") {
		t.Error("the list of tenants does not bind")
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	if _, ok := From(t.Context()); ok {
		t.Error("an empty context has a user")
	}
	if _, ok := From(With(t.Context(), User{Name: "x"})); ok {
		t.Error("a user without a role was let in")
	}
	tenants := []string{"acme"}
	ctx := With(t.Context(), User{Name: "x", Role: Viewer, Tenants: tenants})
	tenants[0] = "other"
	if user, ok := From(ctx); !ok || user.Tenants[0] != "acme" {
		t.Errorf("From = %v, %v", user, ok)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"oncall": true, "oncall@example.com": true, "Zoë Ünal": true, "名": true, strings.Repeat("a", 256): true,
		"": false, " a": false, "a ": false, "a:b": false, "a,b": false, "a\nb": false, "a\x00": false, "a\u202eb": false,
		"a\u200bb": false, "\xff": false, strings.Repeat("a", 257): false,
	} {
		if got := validName(name); got != want {
			t.Errorf("validName(%q) = %v", name, got)
		}
	}
	got := shorten("a\x1b[31m\n" + strings.Repeat("é", 100))
	if len([]rune(got)) != 64 || strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("shorten: %q", got)
	}
}
