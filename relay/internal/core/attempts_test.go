package core

import (
	"math"
	"testing"
)

func TestAttemptsDoNotOverflow(t *testing.T) {
	t.Parallel()
	for before, after := range map[int32]int32{
		0: 1, 9: 10, math.MaxInt32 - 1: math.MaxInt32, math.MaxInt32: math.MaxInt32, -1: 1, math.MinInt32: 1,
	} {
		if got := oneMore(before); got != after {
			t.Errorf("%d became %d, want %d", before, got, after)
		}
	}
}
