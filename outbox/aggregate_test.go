package outbox

import "testing"

// hostileParts are made to look like the borders between the parts of a key.
var hostileParts = []string{
	"", "default", "order", "7", "/", "//", "order/7", "order/order/7", "default/order", "%", "%2F", "%25", "%252F",
	"a%2Fb", "a/b", "ü/%\x00", " ",
}

func TestKeysNeverCollide(t *testing.T) {
	t.Parallel()
	met := map[string]Aggregate{}
	for _, namespace := range hostileParts {
		for _, kind := range hostileParts {
			for _, id := range hostileParts {
				a := Aggregate{Namespace: namespace, Type: kind, ID: id}
				key := a.Key()
				if namespace == "" {
					a.Namespace = DefaultNamespace // they are one
				}
				if other, is := met[key]; is && other != a {
					t.Errorf("%q is the key of %+v and of %+v", key, other, a)
				}
				met[key] = a
			}
		}
	}
}

// The key of what an outbox can store is as it reads, and fits into a broker's: Pub/Sub takes 1,024 bytes.
func TestKeysReadAsTheyAre(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]Aggregate{
		"default/order/7":         {Type: "order", ID: "7"},
		"default/order/8":         {Namespace: "default", Type: "order", ID: "8"},
		"billing/vendor-order/%/": {Namespace: "billing", Type: "vendor-order", ID: "%/"},
	} {
		if got := a.Key(); got != want {
			t.Errorf("%+v: got %q, want %q", a, got, want)
		}
	}
	if longest := 2*MaxNameBytes + MaxAggregateIDBytes + 2; longest > 1024 {
		t.Errorf("a key can have %d bytes", longest)
	}
}

// FuzzAggregateKey: two aggregates have the same key only if they are the same.
func FuzzAggregateKey(f *testing.F) {
	f.Add("order", "order", "7", "default", "order", "order/7")
	f.Add("", "order", "7", "default", "order", "7")
	f.Add("a/b", "c", "d", "a", "b/c", "d")
	f.Add("a%2Fb", "c", "d", "a/b", "c", "d")
	f.Fuzz(func(t *testing.T, namespace, kind, id, namespace2, kind2, id2 string) {
		one, two := Aggregate{namespace, kind, id}, Aggregate{namespace2, kind2, id2}
		equal := one.Key() == two.Key()
		for _, a := range []*Aggregate{&one, &two} {
			if a.Namespace == "" {
				a.Namespace = DefaultNamespace
			}
		}
		if equal != (one == two) {
			t.Errorf("%+v has the key %q, %+v has %q", one, one.Key(), two, two.Key())
		}
	})
}
