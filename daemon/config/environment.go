package config

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/suggest"
)

// ofKubernetes are the variables that Kubernetes and Docker add to a container for a service, here for one
// whose name begins like the program's prefix. Nobody meant them as configuration.
var ofKubernetes = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|` +
	`PORT|ADDR))?)=|_PORT=(tcp|udp|sctp)://`)

// readEnvironment takes what the environment has, and the name of the file.
func (s Set) readEnvironment(problems *problems, environ []string) (environment source, file string) {
	known := map[string]target{s.variable(configName): {}}
	for name, target := range s.targets() {
		known[s.variable(name)] = target
	}
	for _, alias := range s.Aliases {
		known[alias.Variable] = target{definition: s.targets()[alias.Key].definition, unit: alias.Unit}
	}
	environment = source{}
	for _, line := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(line, "=")
		from := "environment " + name
		target, ours := known[name]
		switch {
		case !ours && strings.HasPrefix(name, s.Prefix) && !slices.Contains(s.Ignored, name) &&
			!ofKubernetes.MatchString(line):
			suggestion := ""
			if !problems.full() {
				suggestion = suggest.DidYouMean(name, slices.Collect(maps.Keys(known)))
			}
			problems.addf("environment", "", "%.80s is not known%s", name, suggestion)
		case !ours: // another program's
		case target.definition == nil:
			file = text
		case target.file:
			environment.putFile(problems, target.definition, text, from)
		default:
			environment.put(problems, target.definition, given{text: inUnit(text, target.unit), source: from})
		}
	}
	return environment, file
}

// inUnit gives a bare number its unit.
func inUnit(text string, unit time.Duration) string {
	number, err := strconv.Atoi(text)
	if unit == 0 || err != nil || number < 0 || number > math.MaxInt64/int(unit) {
		return text
	}
	return (time.Duration(number) * unit).String()
}

// putFile takes the name of a secret's file.
func (s source) putFile(problems *problems, d *definition, name, from string) {
	if err := checkLine(name); err != nil || name == "" {
		problems.addf(from, d.name, "must name a file")
		return
	}
	s.put(problems, d, given{file: name, source: from + " -> " + name})
}
