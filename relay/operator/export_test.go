package operator

// SetWindow has searches look at fewer events, so that a test needs no 50,000.
func (o *Operator) SetWindow(events int) { o.window = events }
