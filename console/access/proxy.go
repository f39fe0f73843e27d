package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// shortestProxySecret is in bytes. It is never typed, so it can be as long as it should.
	shortestProxySecret = 32

	proxySecretHeader = "X-Posthaste-Proxy-Secret" //nolint:gosec // the name of a header
	proxyUserHeader   = "X-Forwarded-User"
	proxyGroupsHeader = "X-Forwarded-Groups"
)

// ProxyConfig says which proxy is believed, and what it says.
type ProxyConfig struct {
	// From are the networks that the proxy connects from. A header from elsewhere is never believed.
	From []netip.Prefix
	// Secret is what the proxy proves itself with, of at least 32 characters, beside its address. It is needed where
	// From has more than single addresses: whoever else is in such a network could otherwise claim to be anybody.
	//
	// The proxy sends it in SecretHeader, or as the password of Basic, as oauth2-proxy does with basic_auth_password.
	// Then the name in Basic has to be the one in UserHeader.
	Secret string
	// SecretHeader defaults to X-Posthaste-Proxy-Secret.
	SecretHeader string
	// UserHeader has the user's name. Defaults to X-Forwarded-User. The proxy must take it, and GroupsHeader, out of
	// what clients send.
	UserHeader string
	// GroupsHeader has the user's groups, with commas between them. Defaults to X-Forwarded-Groups. It is read only
	// where the users file has groups.
	GroupsHeader string
	// Users has the roles, by the names of users and, for those it does not name, by their groups. Others are denied.
	// Secrets in it are not used.
	Users *Users

	// now is the clock of a test.
	now func() time.Time
}

// Proxy is the mode behind a proxy that asks an identity provider who somebody is.
type Proxy struct {
	config   ProxyConfig
	attempts *attempts
}

var _ Mode = (*Proxy)(nil)

// NewProxy checks a configuration, and returns all that is wrong with it.
func NewProxy(config ProxyConfig) (*Proxy, error) {
	if config.now == nil {
		config.now = time.Now
	}
	defaultTo(&config.SecretHeader, proxySecretHeader)
	defaultTo(&config.UserHeader, proxyUserHeader)
	defaultTo(&config.GroupsHeader, proxyGroupsHeader)
	var problems []error
	if config.Users == nil {
		problems = append(problems, errors.New("a proxy needs a users file, which has the roles"))
	}
	if config.Secret != "" && len(config.Secret) < shortestProxySecret {
		problems = append(problems, fmt.Errorf("the proxy's secret must have at least %d characters: make one with "+
			"openssl rand -hex 32", shortestProxySecret))
	}
	problems = append(problems, checkHeaders(&config)...)
	problems = append(problems, checkNetworks(&config)...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Proxy{config: config, attempts: newAttempts(config.now)}, nil
}

func defaultTo(value *string, name string) {
	if *value == "" {
		*value = name
	}
}

// checkHeaders brings the headers' names into the form that requests have. Two jobs for one header are a mistake, and
// Authorization is taken out of requests.
func checkHeaders(config *ProxyConfig) (problems []error) {
	seen := map[string]bool{"Authorization": true}
	for _, name := range []*string{&config.SecretHeader, &config.UserHeader, &config.GroupsHeader} {
		*name = http.CanonicalHeaderKey(*name)
		if strings.ContainsAny(*name, " :_\t\r\n") || seen[*name] {
			problems = append(problems, fmt.Errorf("header %q of the proxy: must be a name with letters and dashes, "+
				"not Authorization, and another one for the user, the groups and the secret", shorten(*name)))
		}
		seen[*name] = true
	}
	return problems
}

// checkNetworks brings the networks into the form that addresses have here.
func checkNetworks(config *ProxyConfig) (problems []error) {
	if len(config.From) == 0 {
		return []error{errors.New("the proxy's networks are missing: give --proxy-from, such as 10.1.2.3/32")}
	}
	networks := make([]netip.Prefix, 0, len(config.From))
	for _, from := range config.From {
		network := unmapped(from)
		switch {
		case !network.IsValid():
			problems = append(problems, errors.New("a network of the proxy is not one: write 10.1.2.3/32"))
		case network.Bits() == 0:
			problems = append(problems, fmt.Errorf("--proxy-from %s is every address there is: name the proxy's network", from))
		case !network.IsSingleIP() && config.Secret == "":
			problems = append(problems, fmt.Errorf("--proxy-from %s has more than one address, and any of them could claim to "+
				"be anybody: give --proxy-secret-file too, or the proxy's own address", from))
		}
		networks = append(networks, network)
	}
	config.From = networks
	return problems
}

// unmapped is a network of IPv4 written as one of IPv6, as the former.
func unmapped(network netip.Prefix) netip.Prefix {
	if network.Addr().Is4In6() && network.Bits() >= 96 {
		return netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	return network
}

// Rules name the header with the proxy's secret.
func (p *Proxy) Rules() Rules { return Rules{SecretHeaders: []string{p.config.SecretHeader}} }

// Authenticate believes the proxy, and nobody else.
func (p *Proxy) Authenticate(r *http.Request) (User, error) {
	if reason := p.mistrust(r); reason != "" {
		if wait := p.attempts.begin(source(r)); wait > 0 {
			return User{}, tooMany(wait, "")
		}
		return User{}, &Denial{
			Status: http.StatusForbidden, Message: "Open the console through its proxy.", Reason: reason,
		}
	}
	name, err := onlyValue(r, p.config.UserHeader)
	if err != nil || !validName(name) {
		return User{}, &Denial{
			Status: http.StatusForbidden, Name: name,
			Message: "The proxy did not say who you are. It must send one name in " + p.config.UserHeader + ".",
			Reason:  "the proxy sent no single valid name",
		}
	}
	if user, ok := p.find(r, name); ok {
		return user, nil
	}
	return User{}, &Denial{
		Status: http.StatusForbidden, Name: name, Reason: "the users file has neither the user nor one of their groups",
		Message: "You are signed in as " + shorten(name) + ", who is not a user of this console. " +
			"Its users file needs your name, or one of your groups.",
	}
}

// mistrust says why a request is not from the proxy, or nothing.
func (p *Proxy) mistrust(r *http.Request) string {
	from, listed := remote(r), false
	for _, network := range p.config.From {
		listed = listed || network.Contains(from)
	}
	if !listed {
		return "the sender is in none of the proxy's networks"
	}
	if p.config.Secret == "" {
		return ""
	}
	if len(r.Header[p.config.SecretHeader]) > 0 {
		sent, err := onlyValue(r, p.config.SecretHeader)
		if err != nil || !sameSecret(sent, p.config.Secret) {
			return "the proxy's secret is wrong"
		}
		return ""
	}
	given, err := credentialsOf(r)
	if err != nil || given.scheme != basic || !sameSecret(given.secret, p.config.Secret) {
		return "the proxy's secret is missing or wrong"
	}
	// A name that came with the secret is the proxy's own word. Where the header has another one, the header may be
	// the client's, which the proxy let through.
	if name, err := onlyValue(r, p.config.UserHeader); err != nil || name != given.name {
		return "the names in Authorization and in the user's header differ: let the proxy send one name in both"
	}
	return ""
}

// find has the user's own entry before those of their groups.
func (p *Proxy) find(r *http.Request, name string) (User, bool) {
	users := p.config.Users.file.get(r.Context())
	if a, ok := users.accounts[name]; ok {
		return a.user, true
	}
	if len(users.groups) == 0 {
		return User{}, false
	}
	joined, err := onlyValue(r, p.config.GroupsHeader)
	if err != nil {
		return User{}, false
	}
	var groups []string
	for group := range strings.SplitSeq(joined, ",") {
		groups = append(groups, strings.TrimSpace(group))
	}
	return users.byGroup(name, groups)
}

// onlyValue is the value of a header that is there once. A second one could be the client's own, which the proxy
// passed on.
func onlyValue(r *http.Request, header string) (string, error) {
	values := r.Header[header]
	if len(values) != 1 {
		return "", fmt.Errorf("%s is there %d times", header, len(values))
	}
	return values[0], nil
}
