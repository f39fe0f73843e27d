package outbox

import "strings"

// An Aggregate names the thing that events are about. Its events are published in order, and a consumer handles them
// one after the other; those of another namespace are about another thing, also where type and id are the same.
type Aggregate struct {
	Namespace string // empty: [DefaultNamespace]
	Type, ID  string
}

// inKeys keeps the parts of a key apart. Names that an outbox has stored hold neither of the two, so their keys read as
// they are; what others call a name may.
var inKeys = strings.NewReplacer("%", "%25", "/", "%2F")

// Key is the aggregate in one text, "namespace/type/id", for brokers and maps. No two aggregates have the same:
// namespace and type are escaped where they hold a '/' or a '%', and the id is what is left.
func (a Aggregate) Key() string {
	if a.Namespace == "" {
		a.Namespace = DefaultNamespace
	}
	return inKeys.Replace(a.Namespace) + "/" + inKeys.Replace(a.Type) + "/" + a.ID
}
