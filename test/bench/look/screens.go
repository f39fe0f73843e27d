package look

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
)

// mostScreen is how long the server may take for a screen of the console.
const mostScreen = 100 * time.Millisecond

// What limits of screens are made of, beside those of the commands.
const (
	whyOverview = "the survey, the charts' minutes of twenty topics, and the fleet"
	whyPath     = "the survey, the fleet, the newest minutes of each topic, and who blocks whom"
	whyBoth     = "the dead ones, and the letters of each"
)

// screens are the pages of the console that are measured, each as it opens and read for the first time. {..} are events
// as in commands.
var screens = []command{
	{name: "screen_overview", path: "", pages: 20_000, why: whyOverview},
	{
		name: "screen_three_days", path: "?minutes=4320", pages: 40_000, why: whyOverview,
		most: 2 * time.Second, // the charts of 72 hours are of 172,800 rows, and somebody has to ask for them
	},
	{name: "screen_events", path: "events", pages: 400, why: whyPage},
	{name: "screen_events_dead", path: "events?q=state:dead", pages: 4_000, why: whyLetters},
	{name: "screen_events_aggregate", path: "events?q=aggregate:{aggregate}", pages: 400, why: whyIndex},
	{name: "screen_event_published", path: "events/{published}", pages: 500, why: whyEvent},
	{name: "screen_event_dead", path: "events/{dead}", pages: 500, why: whyEvent},
	{name: "screen_event_waiting", path: "events/{waiting}", pages: 4_000, why: whyLine},
	{name: "screen_event_ready", path: "events/{ready}", pages: 8_000, why: whyLine},
	{name: "screen_aggregate", path: "aggregate?type=order&id={order}", pages: 400, why: whyIndex},
	{name: "screen_aggregate_blocked", path: "aggregate?type=order&id=blocked", pages: 6_000, why: whyLarge},
	{name: "screen_aggregate_busy", path: "aggregate?type=order&id=busy", pages: 8_000, why: whyLarge},
	{name: "screen_dead", path: "dead", pages: 5_000, why: whyLetters},
	{name: "screen_problems", path: "problems", pages: 20_000, why: whyProblems},
	{name: "screen_confirm", path: "act/redrive?id={dead}", pages: 500, why: whyEvent},
	{name: "screen_jobs", path: "jobs", pages: 100, why: whyFleet},
	{name: "screen_plan", path: "replay?verb=redrive&q=state:dead", pages: 20_000, why: whyBoth},
	{name: "screen_path", path: "path", pages: 20_000, why: whyPath},
	{name: "screen_topics", path: "topics", pages: 20_000, why: whyOverview},
	{name: "screen_topic", path: "topics?topic=orders", pages: 20_000, why: whyOverview},
	{name: "screen_types", path: "types", pages: 10_000, why: whyFleet},
	{name: "screen_relays", path: "relays", pages: 1_000, why: whyFleet},
	{name: "screen_database", path: "database", pages: 10_000, why: whyCatalog},
	{name: "screen_audit", path: "audit", pages: 500, why: whyPage},
}

// everything is all that is measured one by one.
func everything() []command { return slices.Concat(screens, commands) }

// screen tells whether it is one, and not a command of outboxctl.
func (c *command) screen() bool { return c.args == nil }

// limit is how long it may take.
func (c *command) limit() time.Duration {
	if c.screen() {
		return cmp.Or(c.most, mostScreen)
	}
	return cmp.Or(c.most, mostTime)
}

// page is a console that nobody has used yet, so that nothing of it was read lately.
func page(pool *pgxpool.Pool) (http.Handler, error) {
	quiet := slog.New(slog.DiscardHandler)
	made, err := console.New(console.Config{Outboxes: []console.Outbox{{Name: "bench", DB: pool}}, Log: quiet})
	if err != nil {
		return nil, fmt.Errorf("look: %w", err)
	}
	user := access.User{Name: "ada", Role: access.Admin}
	return access.Middleware(access.Local(user), access.Options{Logger: quiet})(made), nil
}

// open asks a console for a page, and returns it with how long the server took.
func (r *run) open(ctx context.Context, of http.Handler, path string) (string, time.Duration, error) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/o/bench/"+r.words.Replace(path), nil)
	request.RemoteAddr = "127.0.0.1:1"
	answer := httptest.NewRecorder()
	begun := time.Now()
	of.ServeHTTP(answer, request)
	took := time.Since(begun)
	if answer.Code != http.StatusOK {
		return "", 0, fmt.Errorf("look: the console's page %q: status %d: %.500s", path, answer.Code, answer.Body)
	}
	return answer.Body.String(), took, nil
}

// first asks a console that was not used yet for a page.
func (r *run) first(ctx context.Context, path string) (time.Duration, error) {
	of, err := page(r.pool)
	if err != nil {
		return 0, err
	}
	_, took, err := r.open(ctx, of, path)
	return took, err
}
