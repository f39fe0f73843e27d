package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// A client lives stories.
type client struct {
	address string
	http    *http.Client
	turns   <-chan time.Time
	counts  *counts
	logger  *slog.Logger
	random  *rand.Rand
	stores  []string
}

// answer is what the API says to a change.
type answer struct {
	ID       string   `json:"id"`
	LineIDs  []string `json:"lineIds"`
	EventIDs []string `json:"eventIds"`
	Error    string   `json:"error"`
}

var errOver = errors.New("time is over")

// live lives stories until time is over. One in which a request failed ends there.
func (c *client) live(ctx context.Context) error {
	for {
		err := c.story(ctx)
		switch {
		case errors.Is(err, errOver):
			return nil
		case err != nil:
			c.counts.failures.Add(1)
			c.logger.WarnContext(ctx, "a story has ended", slog.String("error", err.Error()))
		}
	}
}

// send makes a request when it is its turn. One that has begun is finished: what it did, the shop has done.
func (c *client) send(ctx context.Context, method, path string, body any) (said answer, err error) {
	select {
	case <-c.turns:
	case <-ctx.Done():
		return said, errOver
	}
	text, err := json.Marshal(body)
	if err != nil {
		return said, fmt.Errorf("encode: %w", err)
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, c.address+path, bytes.NewReader(text))
	if err != nil {
		return said, fmt.Errorf("%s: %w", path, err)
	}
	c.counts.requests.Add(1)
	response, err := c.http.Do(request)
	if err != nil {
		return said, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&said); err != nil {
		return said, fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	if response.StatusCode/100 != 2 {
		return said, fmt.Errorf("%s: %s: %s", path, response.Status, said.Error)
	}
	c.counts.events.Add(int64(len(said.EventIDs)))
	return said, nil
}

func (c *client) post(ctx context.Context, path string, body any) (answer, error) {
	return c.send(ctx, http.MethodPost, path, body)
}

// each posts to several paths, one after the other.
func (c *client) each(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if _, err := c.post(ctx, path, fields{}); err != nil {
			return err
		}
	}
	return nil
}
