package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"github.com/posthaste-dev/posthaste/console"
)

// none names the events that nothing means.
var none = hex.EncodeToString(sha256.New().Sum(nil))

// systemParameters are those of the screens about the system.
func (w *walk) systemParameters(entry console.Entry) (query string, body url.Values, known bool) {
	switch entry.Name {
	case "topics", "relays", "path", "audit", "types", "database":
		return "", nil, true
	case "erasure", "erase": // of nothing, for the others want the event
		return "q=type%3Anothing", form("q", "type:nothing", "typed", "0", "counted", none, "reason",
			"the walk"), true
	case "ordering", "order":
		return "scope=topic&name=orders", form("scope", "topic", "name", "orders", "rate", "5", "reason", "the walk"), true
	case "restored", "trust":
		return "", form("reason", "the walk"), true
	default:
		return "", nil, false
	}
}
