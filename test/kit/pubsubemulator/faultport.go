package pubsubemulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxFaultBody is far more than a fault needs.
const maxFaultBody = 64 << 10

// Stats is what the emulator has done.
type Stats struct {
	// Accepted counts the messages in the journal, those of earlier runs included.
	Accepted int64 `json:"accepted"`
	// Replayed counts the messages that were still to be acknowledged when this run started.
	Replayed int64 `json:"replayed"`
	// Faulted counts the calls of this run that met a fault, by its kind.
	Faulted map[string]int `json:"faulted"`
	// Topics and Subscriptions count what exists now.
	Topics        int `json:"topics"`
	Subscriptions int `json:"subscriptions"`
	// Waiting is the most that one subscription has still to acknowledge, of those without a filter.
	Waiting int `json:"waiting"`
	// Held counts the calls that a KindLate holds.
	Held int `json:"held"`
}

// faultPort serves the fault API.
func (s *Server) faultPort() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Stats()) })
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Faults()) })
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) { s.serveFault(w, r, false) })
	mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) { s.serveFault(w, r, true) })
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		writeJSON(w, s.Faults())
	})
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]int{"released": s.Release()})
	})
	return mux
}

// serveFault adds the fault in the body, or makes it the only one, and answers with the list.
func (s *Server) serveFault(w http.ResponseWriter, r *http.Request, replace bool) {
	f, err := decodeFault(http.MaxBytesReader(w, r.Body, maxFaultBody))
	if err == nil {
		err = s.faults.add(replace, f)
	}
	if err == nil {
		writeJSON(w, s.Faults())
		return
	}
	code := http.StatusBadRequest
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, err.Error(), code)
}

// decodeFault reads one fault. An unknown field is refused: a misspelt one would silently make
// another fault than its author meant.
func decodeFault(body io.Reader) (Fault, error) {
	var f Fault
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return f, fmt.Errorf("the body is not a fault, such as {\"kind\":\"delay\",\"ms\":200}: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return f, errors.New("the body holds more than one fault: send one at a time")
	}
	return f, nil
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
