package console

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// Story is how somebody repaired the shop with the console alone, and what the database and the broker say of it.
type Story struct {
	// Steps are those that were gone, in words.
	Steps []string
	Took  time.Duration
	// Redriven is how many events the job did, and Group how many the group had.
	Redriven, Group int64
	// Reissued is how many messages came that say that they are the edited event, Followers how many of those behind it.
	Reissued, Followers int
	// Waiting and Unresolved are how many events and dead letters are left that wait for somebody.
	Waiting, Unresolved int64
	// Disorder counts messages that came behind later ones of their aggregate and topic.
	Disorder int
	// Looks, Edits and Redrives are what the log of actions has of it.
	Looks, Edits, Redrives int64
}

// storyteller goes through the console as one person would.
type storyteller struct {
	*run
	*tab

	story   *Story
	blocker outbox.ID
}

// steps of the story, in their order.
var steps = []struct {
	name string
	do   func(*storyteller, context.Context) error
}{
	{"see that something is wrong", (*storyteller).overview},
	{"find the event that blocks", (*storyteller).findBlocker},
	{"read why another waits", (*storyteller).readWhy},
	{"edit it and issue it again", (*storyteller).edit},
	{"see the rest of its aggregate go", (*storyteller).unblocked},
	{"find the group that died", (*storyteller).findGroup},
	{"redrive it in order", (*storyteller).redrive},
	{"watch the backlog fall", (*storyteller).watch},
}

func (r *run) story(ctx context.Context) error {
	began := time.Now()
	t, err := r.tab(ctx, browser.Light)
	if err != nil {
		return err
	}
	s := &storyteller{run: r, tab: t, story: &r.report.Story}
	for _, step := range steps {
		if err := step.do(s, ctx); err != nil {
			_ = s.Screenshot(ctx, filepath.Join(r.plan.Folder, "story.png"), true) // of use to whoever reads the error
			return fmt.Errorf("%s: %w%s", step.name, err, t.said(ctx))
		}
		s.story.Steps = append(s.story.Steps, step.name)
	}
	s.story.Took = time.Since(began)
	v, err := s.see(ctx, "the story", 200, wish{})
	if err != nil {
		return err
	}
	r.add(&r.report.Others, v)
	if err := s.verify(ctx); err != nil {
		return err
	}
	return t.Close(ctx)
}

// shows waits until the page has a text.
func (s *storyteller) shows(ctx context.Context, text string) error {
	return s.Until(ctx, `return document.body.innerText.includes(argument)`, text)
}

func (s *storyteller) overview(ctx context.Context) error {
	if _, err := s.Open(ctx, s.address+inShop("")); err != nil {
		return err
	}
	return s.shows(ctx, shipmentsTopic)
}

// problem opens one event of a group of problems.
func (s *storyteller) problem(ctx context.Context, eventType string) error {
	if err := s.Click(ctx, "nav.menu a", "Problems"); err != nil {
		return err
	}
	return s.Click(ctx, group(eventType)+" a", "Open one")
}

// group is the dead letters of a type among the problems.
func group(eventType string) string {
	return fmt.Sprintf("li.card:has-text(%q):has-text(\"dead letter\")", eventType)
}

func (s *storyteller) findBlocker(ctx context.Context) (err error) {
	if err := s.problem(ctx, "price_changed"); err != nil {
		return err
	}
	if err := s.shows(ctx, "currency must be three letters"); err != nil {
		return err
	}
	var id string
	if err := s.Eval(ctx, `return document.getElementById('event-id').textContent`, nil, &id); err != nil {
		return err
	}
	s.blocker, err = outbox.ParseID(strings.TrimSpace(id))
	return err
}

// readWhy goes to an event behind it, on the page of their aggregate, and back. It says for whom it waits.
func (s *storyteller) readWhy(ctx context.Context) error {
	if err := s.Click(ctx, "dl.facts a", "product/"+blockedProduct); err != nil {
		return err
	}
	if err := s.Wait(ctx, "main tbody tr[data-fault]", s.blocker.String()); err != nil {
		return err
	}
	if err := s.Click(ctx, "main tbody tr:not([data-fault]) a.mono", ""); err != nil {
		return err
	}
	if err := s.Wait(ctx, "#event-id", ""); err != nil {
		return err
	}
	if err := s.shows(ctx, s.blocker.String()); err != nil {
		return err
	}
	_, err := s.Open(ctx, s.address+inShop("events/"+s.blocker.String()))
	return err
}

func (s *storyteller) edit(ctx context.Context) error {
	if err := s.Click(ctx, "button", "Show the payload"); err != nil {
		return err
	}
	if err := s.Wait(ctx, "#payload", ""); err != nil {
		return err
	}
	if err := s.pictures(ctx, s.tab, "payload"); err != nil {
		return err
	}
	if err := s.Click(ctx, "button", "Edit and reissue"); err != nil {
		return err
	}
	if err := s.Wait(ctx, "#data", ""); err != nil {
		return err
	}
	if err := s.pictures(ctx, s.tab, "edit"); err != nil {
		return err
	}
	var content string
	if err := s.Eval(ctx, `return document.getElementById('data').value`, nil, &content); err != nil {
		return err
	}
	if !strings.Contains(content, `"EURO"`) {
		return fmt.Errorf("the data to edit are %q", content)
	}
	if err := s.Fill(ctx, "#data", strings.ReplaceAll(content, `"EURO"`, `"EUR"`)); err != nil {
		return err
	}
	if err := s.Fill(ctx, "#reason", "the currency had four letters"); err != nil {
		return err
	}
	return s.Click(ctx, "button", "Make the new event")
}

func (s *storyteller) unblocked(ctx context.Context) error {
	if err := eventually.Within(ctx, s.plan.Patience, "what waited is published", func() (bool, error) {
		return s.broker().count(s.behind) == followers, nil
	}); err != nil {
		return err
	}
	if _, err := s.Open(ctx, s.address+inShop("aggregate", "type", "product", "id", blockedProduct)); err != nil {
		return err
	}
	return s.shows(ctx, "Nothing is blocked")
}

func (s *storyteller) broker() *broker { return &s.shop.broker }

// behind tells whether a message is one of those that waited for the event that was edited.
func (s *storyteller) behind(a arrival) bool {
	return a.topic == pricesTopic && strings.HasSuffix(a.key, "/"+blockedProduct) && a.reissueOf == ""
}

func (s *storyteller) findGroup(ctx context.Context) error {
	if err := s.problem(ctx, "invoice_issued"); err != nil {
		return err
	}
	if err := s.shows(ctx, "value must be one of EUR, USD, GBP"); err != nil {
		return err
	}
	s.broker().invoicesWork.Store(true) // whoever has the topic takes EURO from now on
	return s.Click(ctx, "nav.menu a", "Problems")
}

func (s *storyteller) redrive(ctx context.Context) error {
	if err := s.Click(ctx, group("invoice_issued")+" a", "Redrive all"); err != nil {
		return err
	}
	s.story.Group = int64(s.plan.Customers * s.plan.Invoices)
	for _, text := range []string{fmt.Sprintf("%d events", s.story.Group), "The order within each aggregate is kept"} {
		if err := s.shows(ctx, text); err != nil {
			return err
		}
	}
	if err := s.Fill(ctx, "#reason", "the topic takes them now"); err != nil {
		return err
	}
	if err := s.Click(ctx, "button", "Start the job"); err != nil {
		return err
	}
	return s.shows(ctx, fmt.Sprintf("%d of %d done", s.story.Group, s.story.Group))
}

// watch repairs what is left, deploys a relay that knows all types, and sees the number on the overview fall to zero.
func (s *storyteller) watch(ctx context.Context) error {
	if _, err := s.Open(ctx, s.address+inShop("")); err != nil {
		return err
	}
	s.broker().shipmentsWork.Store(true)
	s.broker().emailsWork.Store(true)
	if err := s.shop.closeWriter(ctx); err != nil {
		return err
	}
	if err := s.shop.deploy(ctx); err != nil {
		return err
	}
	if err := s.stopFlow(); err != nil {
		return err
	}
	return s.Until(ctx, `
		const card = [...document.querySelectorAll('.card')].find(c => c.querySelector('h3')?.textContent === 'Waiting')
		return card?.querySelector('.figure').textContent.trim() === '0'`, nil)
}

// verify looks at the tables and at what the broker got.
func (s *storyteller) verify(ctx context.Context) (err error) {
	for into, query := range map[*int64]string{
		&s.story.Redriven: `SELECT coalesce(max(done), 0) FROM shop.outbox_jobs
			WHERE verb = 'redrive' AND state = 'done' AND actor = 'ada' AND passed = 0`,
		&s.story.Waiting: `SELECT count(*) FROM shop.outbox_events WHERE state IN (0, 1)`,
		&s.story.Unresolved: `SELECT count(*) FROM shop.outbox_dlq d WHERE NOT EXISTS (SELECT FROM shop.outbox_actions a
			WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue'))`,
		&s.story.Looks: `SELECT count(*) FROM shop.outbox_actions WHERE actor = 'ada' AND verb = 'look'`,
		&s.story.Edits: `SELECT count(*) FROM shop.outbox_actions WHERE actor = 'ada' AND verb = 'reissue'
			AND event_id = '{blocker}'`,
		&s.story.Redrives: `SELECT count(*) FROM shop.outbox_actions WHERE actor = 'ada' AND verb = 'redrive'
			AND event_id IN (SELECT id FROM shop.outbox_events WHERE event_type = 'invoice_issued')`,
	} {
		query = strings.ReplaceAll(query, "{blocker}", s.blocker.String())
		if *into, err = s.db.number(ctx, query); err != nil {
			return err
		}
	}
	s.story.Disorder = s.broker().disorder()
	s.story.Followers = s.broker().count(s.behind)
	s.story.Reissued = s.broker().count(func(a arrival) bool { return a.reissueOf == s.blocker.String() })
	return nil
}

func (s *Story) problems(m must) {
	m(len(s.Steps) == len(steps), "the story ended after %q", s.Steps)
	m(s.Group > 0 && s.Redriven == s.Group, "the job has redriven %d of %d", s.Redriven, s.Group)
	m(s.Reissued == 1, "the edited event came %d times", s.Reissued)
	m(s.Followers == followers, "%d of %d came that waited for the edited one", s.Followers, followers)
	m(s.Waiting == 0, "%d events still wait", s.Waiting)
	m(s.Unresolved == 0, "%d dead letters still wait for somebody", s.Unresolved)
	m(s.Disorder == 0, "%d messages came behind later ones of their aggregate", s.Disorder)
	m(s.Looks > 0, "nobody wrote down who looked at a payload")
	m(s.Edits == 1 && s.Redrives == s.Group, "the log has %d edits and %d redrives", s.Edits, s.Redrives)
}

func (s *Story) figures(line *figures.Line) {
	line.Addf("steps", "%d", len(s.Steps))
	line.Addf("story_seconds", "%.0f", s.Took.Seconds())
	line.Addf("redriven", "%d", s.Redriven)
	line.Addf("reissued", "%d", s.Reissued)
	line.Addf("waiting", "%d", s.Waiting)
	line.Addf("unresolved", "%d", s.Unresolved)
	line.Addf("disorder", "%d", s.Disorder)
	line.Addf("looks_logged", "%d", s.Looks)
}
