package shape

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// oldWord is a word that names no longer have, with all its forms, and what to say instead.
type oldWord struct {
	forms []string
	where where
	use   string
}

// where says in which names a word counts. Most count everywhere.
type where int

const (
	everywhere where = iota
	// inNames is for plain English words. The name of a test is a sentence, in which they are right.
	inNames
	// first is for verbs that were the whole name or its beginning, as in ask and askTime. Neither counts in sentences.
	first
	// ofUnits is for words of fixtures: types, functions and packages were called so. A variable may well be a place.
	ofUnits
)

// oldWords are the words that had two meanings or an odd one. docs/glossary.md has the words in use.
//
// Not here are words that were odd in one place only, inside the core (decide, kept, die, again, behind, begin, gate,
// open, shut): they are good words elsewhere.
var oldWords = []oldWord{
	{[]string{"home", "elsewhere", "arrive"}, inNames, "identity, sameDatabase, moved"},
	{[]string{"homely", "eyes", "blind"}, everywhere, "identity, identityUnknown"},
	{[]string{"plant", "plants", "planted", "planting", "mistaken"}, everywhere, "mutant"},
	{[]string{"care", "careful", "calm"}, inNames, "quarantine, isolating"},
	{[]string{"noted", "noting", "unnote", "unnoted"}, everywhere, "marker, marked"},
	{[]string{"blame", "blamed", "blames", "blaming"}, everywhere, "suspect, charge"},
	{
		[]string{"refuse", "refused", "refuses", "refusing", "refusal", "refusals", "refusable"},
		everywhere, "what it is: invalid, rejected, permissionDenied, recordFailure",
	},
	{[]string{"tell", "tells"}, first, "complete, report"},
	{[]string{"hear", "hears"}, first, "result, receive"},
	{[]string{"obey", "obeys"}, first, "apply"},
	{[]string{"ask", "asks"}, first, "query, request"},
	{[]string{"route", "routes", "routed", "routing"}, everywhere, "topic"},
	{[]string{"fate", "fates"}, everywhere, "disposition"},
	{[]string{"spared"}, everywhere, "exemptFromExpiry"},
	{[]string{"carried"}, everywhere, "acknowledgedBy"},
	{[]string{"bury", "buried", "buries"}, everywhere, "expireUnknown"},
	{[]string{"judge", "judges", "judged", "judging", "judgement"}, everywhere, "checker, check"},
	{[]string{"blow", "blows"}, everywhere, "fault"},
	{[]string{"strike", "strikes", "striking", "struck"}, everywhere, "inject"},
	{[]string{"storm", "storms"}, everywhere, "schedule, or what it is"},
	{[]string{"eye"}, everywhere, "recorder"},
	{[]string{"life", "lives"}, inNames, "relayProcess, or what it is"},
	{[]string{"world", "worlds", "scene", "scenes", "shelf", "desk", "rig", "crew"}, everywhere, "env"},
	{[]string{"place", "places", "house", "cast"}, ofUnits, "env"},
	{[]string{"deal", "deals", "dealt"}, ofUnits, "plan"},
	{[]string{"turned"}, everywhere, "lastTick"},
	{[]string{"mend", "mended", "mends", "mending"}, everywhere, "fix"},
}

// allowed is an old word that stays in some names, in another meaning.
type allowed struct {
	word string
	// name is the identifier, "" for any; under is a folder, "" for all.
	name, under string
	reason      string
}

var allowedWords = []allowed{
	{"refused", "ErrRefused", "", "the one sentinel of this word, which users compare with"},
	{"place", "placeOrder", "", "an order is placed: a word of the examples' business"},
}

// byForm are the old words by each of their forms.
func byForm() map[string]oldWord {
	all := map[string]oldWord{}
	for _, old := range oldWords {
		for _, form := range old.forms {
			all[form] = old
		}
	}
	return all
}

// counts tells whether a word counts in a name of this kind, where it is the word of this number.
func (w where) counts(in kind, number int) bool {
	switch w {
	case inNames:
		return in != sentence
	case first:
		return in != sentence && number == 0
	case ofUnits:
		return in == unit || in == method
	default:
		return true
	}
}

// coreMethods are the methods of the core's interfaces. Who implements one must call it so, as long as the core does.
func (r *Repository) coreMethods() map[string]bool {
	all := map[string]bool{}
	for _, s := range r.sources {
		if !s.isGo() || !under(s.path, coreFolder) {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			if declared, is := node.(*ast.InterfaceType); is {
				for _, field := range declared.Methods.List {
					for _, name := range field.Names {
						all[name.Name] = true
					}
				}
			}
			return true
		})
	}
	return all
}

// oldNames finds names with old words. The core and its store keep theirs until they get their new shape.
func (r *Repository) oldNames() (findings []Finding) {
	known, demanded := byForm(), r.coreMethods()
	for _, s := range r.sources {
		var names []identifier
		switch {
		case under(s.path, coreFolder, storeFolder):
			continue
		case s.isGo():
			names = r.declared(s.file)
		case s.language == sqlLanguage:
			names = sqlIdentifiers(s.text, 1)
		}
		for _, n := range names {
			for number, word := range words(n.name) {
				old, is := known[word]
				if !is { // as in refusef, which takes a format
					old, is = known[strings.TrimSuffix(word, "f")]
				}
				if n.kind == method && demanded[n.name] && under(s.path, "relay") {
					continue
				}
				if is && old.where.counts(n.kind, number) && !isAllowed(s.path, n.name, word) {
					findings = append(findings, Finding{
						s.path, n.line, fmt.Sprintf("%s: %q is an old word; use %s", n.name, word, old.use),
					})
				}
			}
		}
	}
	return findings
}

func isAllowed(file, name, word string) bool {
	return slices.ContainsFunc(allowedWords, func(a allowed) bool {
		return a.word == word && (a.name == "" || a.name == name) && (a.under == "" || under(file, a.under))
	})
}
