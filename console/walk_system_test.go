package console_test

import (
	"net/url"

	"github.com/posthaste-dev/posthaste/console"
)

// systemParameters are those of the screens about the system.
func (w *walk) systemParameters(entry console.Entry) (query string, body url.Values, known bool) {
	switch entry.Name {
	case "topics", "relays", "path", "audit", "types", "database":
		return "", nil, true
	case "erasure", "erase": // of nothing, for the others want the event
		return "q=type%3Anothing", form("q", "type:nothing", "typed", "0", "reason", "the walk"), true
	case "pause", "order":
		return "verb=pause&scope=all", form("verb", "pause", "scope", "all", "reason", "the walk"), true
	case "restored", "trust":
		return "", form("reason", "the walk"), true
	default:
		return "", nil, false
	}
}
