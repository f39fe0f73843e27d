package console

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// Injections is what became of the texts that want to be run.
type Injections struct {
	Visits []Visit
	// Strings, Fields and Texts are how many there are of each; the others how many of them were found on a page.
	Strings, Fields, Texts                int
	StringsFound, FieldsFound, TextsFound int
	// Missing are fields of which no text was found, and texts of a field that has others.
	Missing []string
	// ControlDialogs and ControlReports are what the control pages gave.
	ControlDialogs, ControlReports int
}

// injections opens every page of the hostile outbox.
func (r *run) injections(ctx context.Context) error {
	list, err := injections()
	if err != nil {
		return err
	}
	paths, err := r.hostilePages(ctx)
	if err != nil {
		return err
	}
	found := map[text]bool{}
	// The name of the user is on every page.
	texts := append([]text{textOf(list, "user", 0)}, r.hostile.texts...)
	note := func(v Visit) {
		page := visible(v.text)
		for _, t := range texts {
			if !found[t] {
				found[t] = t.found(page)
			}
		}
		r.add(&r.report.Injections.Visits, v)
	}
	group, working := errgroup.WithContext(ctx)
	// The screens come first: they are looked at on a phone, which long names must not make wider.
	for i, view := range []browser.View{browser.Phone, browser.Light} {
		group.Go(func() error { return r.openAll(working, view, halves(paths)[i], note) })
		group.Go(func() error { return r.openAll(working, view, halves(r.reflected(list))[i], note) })
	}
	for i := range 2 {
		group.Go(func() error { return r.payloads(working, i, note) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.report.Injections.count(list, texts, found)
	return r.control(ctx)
}

// halves deals a list to two.
func halves[T any](list []T) [2][]T { return [2][]T{list[:len(list)/2], list[len(list)/2:]} }

// openAll opens pages one after the other.
func (r *run) openAll(ctx context.Context, view browser.View, paths []string, note func(Visit)) error {
	t, err := r.tab(ctx, view)
	if err != nil {
		return err
	}
	for _, path := range paths {
		v, err := t.look(ctx, path, wish{text: true, width: true})
		if err != nil {
			return err
		}
		r.locked(func() { note(v) })
	}
	return t.Close(ctx)
}

// payloads opens half of the events, and asks for what is in them.
func (r *run) payloads(ctx context.Context, half int, note func(Visit)) error {
	t, err := r.tab(ctx, browser.Dark)
	if err != nil {
		return err
	}
	for _, id := range halves(r.hostile.events)[half] {
		path := in(hostileName, "events/"+id.String())
		v, err := t.look(ctx, path, wish{text: true})
		if err != nil {
			return err
		}
		r.locked(func() { note(v) })
		if err := t.Click(ctx, "button", "Show the payload"); err != nil {
			return err
		}
		if err := t.Wait(ctx, "#payload", ""); err != nil {
			return fmt.Errorf("console: the payload of %s: %w", path, err)
		}
		if v, err = t.see(ctx, path+" with its payload", 200, wish{text: true}); err != nil {
			return err
		}
		r.locked(func() { note(v) })
	}
	return t.Close(ctx)
}

// control opens a page that has forgotten to escape, with the console's policy and without: the proof must see both.
func (r *run) control(ctx context.Context) error {
	for path, count := range map[string]func(browser.Seen){
		"/control/policy": func(s browser.Seen) { r.report.Injections.ControlReports += len(s.CSP) },
		"/control/none":   func(s browser.Seen) { r.report.Injections.ControlDialogs += len(s.Dialogs) },
	} {
		t, err := r.tab(ctx, browser.Light)
		if err != nil {
			return err
		}
		v, err := t.look(ctx, path, wish{})
		if err != nil {
			return err
		}
		count(v.Seen)
		if err := t.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// count says what was found.
func (j *Injections) count(list []string, texts []text, found map[text]bool) {
	strings, ofField, there := map[int]bool{}, map[string]int{}, map[string]int{}
	for _, t := range texts {
		there[t.Field]++
		if found[t] {
			strings[t.Number] = true
			ofField[t.Field]++
			j.TextsFound++
		}
	}
	j.Strings, j.StringsFound, j.Texts, j.Fields = len(list), len(strings), len(texts), len(there)
	for field, n := range there {
		if ofField[field] > 0 || slices.Contains(unseen, field) {
			j.FieldsFound++
		}
		if ofField[field] < n {
			j.Missing = append(j.Missing, fmt.Sprintf("%s: %d of %d texts", field, ofField[field], n))
		}
	}
}
