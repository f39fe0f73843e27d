package memstore_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// TestFaultsByPlan: before it is done, and after it is done.
func TestFaultsByPlan(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	ids := d.emit("a", "a")
	var next memstore.Fault
	var asked []memstore.Operation
	faulty := &memstore.Faulty{Store: d.Store, Plan: func(operation memstore.Operation) memstore.Fault {
		asked = append(asked, operation)
		return next
	}}
	next = memstore.NotDone
	first := &core.Settle{Owner: d.owner, Published: d.rows(ids[:1]...)}
	if _, err := faulty.Settle(t.Context(), first); !errors.Is(err, memstore.ErrInjected) {
		t.Errorf("not done: %v", err)
	}
	wantState(d, ids[0], core.Ready)
	next = memstore.Lost
	if answer, err := faulty.Settle(t.Context(), first); !errors.Is(err, memstore.ErrInjected) || answer.Applied {
		t.Errorf("lost: %+v, %v", answer, err)
	}
	wantState(d, ids[0], core.Published)
	next = memstore.None
	second := &core.Settle{Owner: d.owner, Published: d.rows(ids[1:]...)}
	if answer, err := faulty.Settle(t.Context(), second); err != nil || !answer.Applied {
		t.Errorf("no fault: %+v, %v", answer, err)
	}
	if !slices.Equal(asked, []memstore.Operation{"Settle", "Settle", "Settle"}) {
		t.Errorf("asked %v", asked)
	}
}

// TestEveryOperationFailsByItsName: a plan is asked about each of them, under the name that it has.
func TestEveryOperationFailsByItsName(t *testing.T) {
	t.Parallel()
	var asked memstore.Operation
	faulty := &memstore.Faulty{Store: newDB(t).Store, Plan: func(operation memstore.Operation) memstore.Fault {
		asked = operation
		return memstore.NotDone
	}}
	operations := reflect.TypeFor[core.Store]()
	for i := range operations.NumMethod() {
		method := reflect.ValueOf(faulty).MethodByName(operations.Method(i).Name)
		arguments := make([]reflect.Value, method.Type().NumIn())
		for n := range arguments {
			arguments[n] = reflect.Zero(method.Type().In(n))
		}
		answer := method.Call(arguments)
		err, _ := reflect.TypeAssert[error](answer[len(answer)-1])
		if name := operations.Method(i).Name; string(asked) != name || !errors.Is(err, memstore.ErrInjected) {
			t.Errorf("%s was planned as %s and answered %v", name, asked, err)
		}
	}
}
