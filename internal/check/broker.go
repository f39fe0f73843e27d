package check

// Delivery is one message as the broker took it.
type Delivery struct {
	// Index is the position at which it arrived, 1 for the first of the run. It is the only order there is.
	Index   uint64 `json:"index"`
	ID      ID     `json:"id"`
	Type    string `json:"type,omitempty"`
	Topic   string `json:"topic"`
	Key     string `json:"key,omitempty"`
	Payload Sum    `json:"payload"`
	Headers Sum    `json:"headers,omitzero"`
	// Request is the request that asked for this copy, 0 if none did.
	Request int64 `json:"request,omitempty"`
}

// Effect is how often consumers applied an event, from a table that they write in their own transaction.
type Effect struct {
	ID    ID  `json:"id"`
	Count int `json:"count"`
}
