package check

// Record is one line of a history: exactly one of its fields is set.
type Record struct {
	Tx       *Tx       `json:"tx,omitempty"`
	Delivery *Delivery `json:"delivery,omitempty"`
	Effect   *Effect   `json:"effect,omitempty"`
	Fault    *Fault    `json:"fault,omitempty"`
	Step     *Step     `json:"step,omitempty"`
	Change   *Change   `json:"change,omitempty"`
	Row      *Row      `json:"row,omitempty"`
	Held     *Held     `json:"held,omitempty"`
	Letter   *Letter   `json:"letter,omitempty"`
	Action   *Action   `json:"action,omitempty"`
	Request  *Request  `json:"request,omitempty"`
	End      *End      `json:"end,omitempty"`
}

// fields counts the fields that are set.
func (r *Record) fields() int {
	n := 0
	for _, set := range [...]bool{
		r.Tx != nil, r.Delivery != nil, r.Effect != nil, r.Fault != nil, r.Step != nil, r.Change != nil,
		r.Row != nil, r.Held != nil, r.Letter != nil, r.Action != nil, r.Request != nil, r.End != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// event returns the id of the event that the record is about.
func (r *Record) event() (id ID, has bool) {
	switch {
	case r.Delivery != nil:
		return r.Delivery.ID, true
	case r.Effect != nil:
		return r.Effect.ID, true
	case r.Step != nil:
		return r.Step.ID, r.Step.hasEvent()
	case r.Change != nil:
		return r.Change.ID, true
	case r.Row != nil:
		return r.Row.ID, true
	case r.Held != nil:
		return r.Held.ID, r.Held.ID != (ID{})
	case r.Letter != nil:
		return r.Letter.ID, true
	case r.Action != nil:
		return r.Action.ID, true
	case r.Request != nil:
		return r.Request.ID, true
	default:
		return ID{}, false
	}
}

// exists tells whether the record shows that the event got out of its producer's transaction.
func (r *Record) exists() bool {
	return r.Delivery != nil || r.Effect != nil || r.Row != nil || r.Held != nil || r.Letter != nil
}

// History is a whole run in memory.
type History []Record

// Check checks the history.
func (h History) Check(floor Floor) *Verdict {
	c := New()
	for _, r := range h {
		c.Add(r)
	}
	return c.Verdict(floor)
}
