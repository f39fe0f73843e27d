package minutes

import (
	"testing"
	"time"
)

// Each bound is the last of its bucket, as the table's comment says: up to 5 ms, up to 10 ms.
func TestBuckets(t *testing.T) {
	t.Parallel()
	for i, bound := range Bounds {
		if at, above := bucket(bound), bucket(bound+time.Nanosecond); at != i || above != i+1 {
			t.Errorf("%s is in bucket %d, and what is longer in %d; want %d and %d", bound, at, above, i, i+1)
		}
	}
	if got := bucket(-time.Second); got != 0 { // the database's clock went back
		t.Errorf("what took less than nothing is in bucket %d", got)
	}
}
