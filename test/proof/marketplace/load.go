package marketplace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Answers is what the API has told its clients.
type Answers struct {
	// Promised are the events of which an answer said that they were emitted.
	Promised []outbox.ID
	// Done, Refused and Interrupted count requests: those that were answered well, those that were refused because of the
	// state of things, and those of which nobody told what became.
	Done, Rejected, Interrupted int
	// Wrong are answers that the API must not give, the first of them.
	Wrong []string
}

// load makes requests as clients do, and writes down what it is answered.
type load struct {
	api      string
	client   *http.Client
	inFlight atomic.Int64
	// waits: the clients make no requests until it is taken back.
	waits atomic.Bool

	mu      sync.Mutex
	answers Answers
}

func newLoad(api string, clients int) *load {
	return &load{api: api, client: &http.Client{
		Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clients},
	}}
}

// run has clients make requests at a rate until ctx ends; then they finish what they have begun.
func (l *load) run(ctx context.Context, plan Plan) Answers {
	var group sync.WaitGroup
	for n := range plan.Clients {
		group.Go(func() {
			tick := time.NewTicker(time.Second * time.Duration(plan.Clients) / time.Duration(plan.Rate))
			defer tick.Stop()
			visitor := &visitor{load: l, dice: rand.New(rand.NewPCG(1, uint64(n)))}
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					if !l.waits.Load() {
						visitor.do(context.WithoutCancel(ctx))
					}
				}
			}
		})
	}
	group.Wait()
	l.client.CloseIdleConnections()
	return l.answers
}

// counts are how many requests were answered well, and of how many nobody told what became.
func (l *load) counts() (done, interrupted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers.Done, l.answers.Interrupted
}

// An answer is what the API says about a change.
type answer struct {
	ID       string      `json:"id"`
	State    string      `json:"state"`
	LineIDs  []string    `json:"lineIds"`
	EventIDs []outbox.ID `json:"eventIds"`
}

// request asks for a change. known is false if nobody told what became of it; ID is empty if it was refused.
func (l *load) request(ctx context.Context, s step) (told answer, known bool) {
	text, err := json.Marshal(s.body)
	if err != nil {
		return told, false
	}
	request, err := http.NewRequestWithContext(ctx, s.method, l.api+s.path, bytes.NewReader(text))
	if err != nil {
		return told, false
	}
	l.inFlight.Add(1)
	status, said := l.send(request)
	l.inFlight.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case status == 0 || status == http.StatusServiceUnavailable:
		l.answers.Interrupted++
		return answer{}, false
	case status == http.StatusConflict || status == http.StatusNotFound:
		l.answers.Rejected++
	case (status == http.StatusOK || status == http.StatusCreated) && json.Unmarshal(said, &told) == nil && told.ID != "":
		l.answers.Done++
		l.answers.Promised = append(l.answers.Promised, told.EventIDs...)
		return told, true
	case len(l.answers.Wrong) < 20:
		l.answers.Wrong = append(l.answers.Wrong, fmt.Sprintf("%s %s: %d %.200s", s.method, s.path, status, said))
	}
	return answer{}, true
}

// send returns a status of 0 for a request that was not answered, or not to its end.
func (l *load) send(request *http.Request) (status int, body []byte) {
	response, err := l.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	return response.StatusCode, body
}
