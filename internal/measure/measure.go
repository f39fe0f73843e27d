// Package measure has the controls of measurements: what a relay can be told to leave out, so that a benchmark shows
// what it costs. It is no part of the relay's API, because a relay that leaves these out keeps fewer promises.
package measure

import "context"

// Control says what is left out. The zero value leaves out nothing.
type Control struct {
	// NoContractCheck publishes without looking at payloads.
	NoContractCheck bool
	// NoWatermark reads every lane from its floor each time.
	NoWatermark bool
}

type key struct{}

// With gives a relay that is run with the context this control.
func With(ctx context.Context, control Control) context.Context {
	return context.WithValue(ctx, key{}, control)
}

// Of is the control of a context.
func Of(ctx context.Context) Control {
	control, _ := ctx.Value(key{}).(Control)
	return control
}
