package drain

import (
	"testing"
)

func filled(events int, numbers ...int64) *Ledger {
	ledger := NewLedger(events)
	for _, seq := range numbers {
		ledger.Take(seq, accountID(int(seq)%2))
	}
	return ledger
}

func TestLedgerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ledger *Ledger
		wrong  bool
	}{
		"in order":                   {filled(4, 1, 2, 3, 4), false},
		"aggregates beside another":  {filled(4, 2, 4, 1, 3), false},
		"lost":                       {filled(4, 1, 2, 3), true},
		"twice":                      {filled(4, 1, 2, 3, 4, 4), true},
		"out of order":               {filled(4, 3, 1, 2, 4), true},
		"a number that is no event":  {filled(4, 1, 2, 3, 4, 5), true},
		"an aggregate that is nones": {func() *Ledger { l := filled(2, 1); l.Take(2, "account-x"); return l }(), true},
	} {
		if err := test.ledger.Check(); (err != nil) != test.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLedgerIsFullWhenAllArrived(t *testing.T) {
	t.Parallel()
	ledger := filled(3, 1, 2, 2)
	select {
	case <-ledger.Full():
		t.Fatal("full with one event missing")
	default:
	}
	ledger.Take(3, accountID(1))
	<-ledger.Full()
	if ledger.First().IsZero() || ledger.Count() != 3 {
		t.Errorf("first at %s, %d events", ledger.First(), ledger.Count())
	}
}
