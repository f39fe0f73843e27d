package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/suggest"
)

// readFlags takes what the arguments have, and the name of the file. It never quotes a value: a secret may
// be where it does not belong.
func (s Set) readFlags(problems *problems, args []string) (flags source, file string) {
	known := map[string]target{flag(configName): {}}
	for name, target := range s.targets() {
		known[flag(name)] = target
	}
	flags = source{}
	for i := 0; i < len(args); i++ {
		name, text, hasText := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			problems.addf("arguments", "", "the argument %d is not a flag", i+1)
			continue
		}
		target, ours := known[name]
		if boolean := ours && target.definition != nil && target.kind == booleanKind; boolean && !hasText {
			text, hasText = "true", true
		}
		if !hasText && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i++
			text, hasText = args[i], true
		}
		from := "flag " + name
		switch {
		case !ours:
			problems.addf("arguments", "", "%.80s is not known%s", name,
				suggest.DidYouMean(name, slices.Collect(maps.Keys(known))))
		case !hasText:
			problems.addf(from, "", "the value is missing; one that begins with -- is given as %s=value", name)
		case target.definition == nil && file != "":
			problems.addf(from, "", "is given twice")
		case target.definition == nil:
			file = text
		case target.file:
			flags.putFile(problems, target.definition, text, from)
		case target.kind == secretKind:
			problems.addf(from, target.name, "a secret is not given as a flag, where others can read it: set %s",
				s.ways(target.definition))
		default:
			flags.put(problems, target.definition, given{text: text, source: from})
		}
	}
	return flags, file
}
