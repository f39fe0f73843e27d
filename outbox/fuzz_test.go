package outbox

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzDedupeKey: two events of one call are one event exactly when namespace, type, tenant and key are all the same,
// and then only with the same content. No two of them can be put together so that they look like others.
func FuzzDedupeKey(f *testing.F) {
	f.Add("a", "b", "", "k", "1", "x", "a", "b", "", "k", "1", "x")
	f.Add("a", "b", "t", "t/k", "1", "x", "a", "b", "", "t/k", "1", "x")
	f.Add("a.b", "c", "", "k", "1", "x", "a", "b.c", "", "k", "1", "x")
	f.Add("a", "b", "t", "t/u/k", "1", "x", "a", "b", "t/u", "t/u/k", "1", "x")
	f.Add("a", "b", "", "k", "1", "x", "a", "b", "", "k", "1x", "")
	f.Add("a", "b", "", "k", "1", "x", "a", "b", "", "K", "1", "x")
	f.Add("a", "b", "", "k\u0301", "1", "x", "a", "b", "", "k", "\u03011", "x")
	f.Fuzz(func(t *testing.T, space, kind, tenant, key, aggregate, note, space2, kind2, tenant2, key2, aggregate2,
		note2 string,
	) {
		if key == "" || key2 == "" {
			return // without a key nothing is the same
		}
		first, ok := acceptable(space, kind, tenant, key, aggregate, note)
		second, ok2 := acceptable(space2, kind2, tenant2, key2, aggregate2, note2)
		if !ok || !ok2 {
			return
		}
		same := first.contract.Namespace == second.contract.Namespace && kind == kind2 && tenant == tenant2 && key == key2
		content := aggregate == aggregate2 && string(first.data) == string(second.data)
		stmt, err := Statement("s", first, second)
		mismatch := errors.Is(err, ErrDedupeMismatch)
		switch {
		case same && !content && !mismatch:
			t.Fatalf("one key with two contents: %v", err)
		case same && content && (err != nil || len(stmt.rows) != 1):
			t.Fatalf("one event twice: %v", err)
		case !same && (err != nil || len(stmt.rows) != 2):
			t.Fatalf("two keys are taken for one: %v", err)
		}
		hashed := contentHash(first.contract.Aggregate, aggregate, first.data) == contentHash(second.contract.Aggregate,
			aggregate2, second.data)
		if hashed != content {
			t.Fatalf("the contents are the same: %t, and their hashes: %t", content, hashed)
		}
	})
}

// acceptable is an event that would be accepted on its own.
func acceptable(space, kind, tenant, key, aggregate, note string) (Event, bool) {
	data, err := json.Marshal(map[string]string{"note": note})
	if err != nil {
		return Event{}, false
	}
	event := Define[json.RawMessage](Contract{
		Type: kind, Aggregate: "order", Topic: "orders", Namespace: space,
	}).New(aggregate, data)
	event.TenantID, event.DedupeKey = tenant, key
	_, err = Statement("s", event)
	return event, err == nil
}
