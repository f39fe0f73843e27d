package console

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

const operatorRole = access.Operator

// mostIndented bounds what a text may grow to on its way: what is nested deeply grows by its depth with every line.
const mostIndented = 16 << 20

// indent makes JSON legible, unless a form has no room for it then.
func indent(raw json.RawMessage) string {
	var out bytes.Buffer
	if len(raw)*(depth(raw)+1) > mostIndented || json.Indent(&out, raw, "", "  ") != nil || out.Len() > mostData {
		return string(raw)
	}
	return out.String()
}

// depth is how many values stand one in another at the most; brackets in texts count as well.
func depth(raw []byte) (most int) {
	now := 0
	for _, c := range raw {
		switch c {
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		}
	}
	return most
}

// deadPage is what the screen of dead letters has.
type deadPage struct {
	Filter string
	// Full is the filter with the tenant to which the user is bound.
	Full    string
	All     bool
	Letters []operator.DeadLetter
	Next    string
	Verbs   []verb
	Jobs    []string
	// Erasable tells that an erasure can have this filter.
	Erasable bool
}

func (q *request) dead() error {
	text := q.text("q")
	filter, err := q.filter(text)
	if err != nil {
		return err
	}
	letters, err := filter.DeadLetters()
	if err != nil {
		return invalid("%s", strings.TrimPrefix(err.Error(), "operator: "))
	}
	limit, err := q.number("limit", 50, 1, mostIDs)
	if err != nil {
		return err
	}
	letters.Limit, letters.After, letters.Unresolved = int(limit), q.text("after"), q.text("all") == ""
	found, err := q.outbox.op.DeadLetters(q.Context(), letters)
	if err != nil {
		return err
	}
	p := &deadPage{
		Filter: text, Full: filter.String(), All: q.text("all") != "", Letters: found.Letters, Next: found.Next,
		Erasable: text != "" && filter.Reason == "" && filter.Error == "",
	}
	if q.user.Can(operatorRole) {
		p.Verbs = verbs[:4]
		p.Jobs = []string{"redrive", "reissue", "skip", "discard"}
	}
	return q.ok("dead", "Dead letters", 0, p)
}

// problem is a group with the filter that finds its dead letters.
type problem struct {
	operator.Problem
	Dead   bool
	Filter string
}

type problemsPage struct {
	*operator.Problems
	Groups []problem
}

func (q *request) problems() error {
	found, err := q.outbox.problems.get(q.Context(), "", q.outbox.op.Problems)
	if err != nil {
		return err
	}
	p := &problemsPage{Problems: found}
	for _, one := range found.Problems {
		p.Groups = append(p.Groups, groupOf(one))
	}
	return q.ok("problems", "Problems", 5, p)
}

// groupOf finds the filter of a group. Words that were replaced, because they differ among its events, are left out of
// it: the longest piece that is the same in all is looked for.
func groupOf(one operator.Problem) problem {
	g := problem{Problem: one}
	reason, dead := strings.CutPrefix(one.Class, "dead: ")
	if !dead {
		return g
	}
	g.Dead = true
	terms := []string{
		term("type", one.EventType), term("topic", one.Topic), term("reason", reason), term("error", piece(one.Error)),
	}
	var all []string
	for _, t := range terms {
		if t != "" {
			all = append(all, t)
		}
	}
	g.Filter = strings.Join(all, " ")
	return g
}

// piece is the longest part of a normalized error that stands in all errors of its group.
func piece(normalized string) (longest string) {
	parts := strings.NewReplacer("<id>", "\x00", "<text>", "\x00", "<n>", "\x00", `"`, "\x00").Replace(normalized)
	for part := range strings.SplitSeq(parts, "\x00") {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return cutBytes(longest, 120)
}

func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
