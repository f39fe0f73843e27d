package pgtest

import (
	"encoding/json"
	"testing"
)

// Pages is how many pages a statement touched, each time it did, with the functions that it called: plan is the answer
// of EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON).
func Pages(t testing.TB, plan []byte) int {
	t.Helper()
	var explained []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(plan, &explained); err != nil {
		t.Fatal(err)
	}
	return explained[0].Plan.Hit + explained[0].Plan.Read
}
