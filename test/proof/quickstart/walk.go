package quickstart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Walked is what came of typing commands until an event was on screen.
type Walked struct {
	// Commands were typed after the install, and Seconds went by from the first of them until the event was on screen.
	Commands int
	Seconds  float64
	// Delivered is the line that showed it.
	Delivered string
	Problems  []string
}

func (w *Walked) problemf(format string, args ...any) {
	w.Problems = append(w.Problems, fmt.Sprintf(format, args...))
}

// tried is the last line that dev prints before events come: what to try is on screen.
var tried = regexp.MustCompile(`(?m)^Ctrl-C ends it\.$`)

// Walk types the commands of a page after its install.
func (p *Page) Walk(ctx context.Context, in Terminal, patience time.Duration) (*Walked, error) {
	expected, err := p.Expected()
	if err != nil {
		return nil, err
	}
	w := &Walked{Commands: 1 + len(p.Others)}
	begun := time.Now()
	stays, err := in.Start(ctx, p.Stays)
	if err != nil {
		return nil, err
	}
	defer func() { // one that has not been stopped
		if err := stays.Stop(patience); err != nil {
			w.problemf("%s ended badly: %v", p.Stays, err)
		}
	}()
	if err := stays.Await(ctx, tried, patience); err != nil {
		w.problemf("%v", err)
		return w, ctx.Err()
	}
	for _, command := range p.Others {
		if shown, err := in.Run(ctx, command); err != nil {
			w.problemf("%s failed: %v: %s", command, err, strings.TrimSpace(shown))
		}
	}
	event := expected[len(expected)-1]
	if err := stays.Await(ctx, event, patience); err != nil {
		w.problemf("the event is not on screen: %v", err)
		return w, ctx.Err()
	}
	w.Seconds, w.Delivered = time.Since(begun).Seconds(), event.FindString(stays.Shown())
	for _, line := range expected {
		if !line.MatchString(stays.Shown()) {
			w.problemf("the page shows what does not come: %s", line)
		}
	}
	return w, w.tryNext(ctx, in, stays.Shown())
}

// tryNext types the other line that dev says to try: it must work as it is.
func (w *Walked) tryNext(ctx context.Context, in Terminal, shown string) error {
	for line := range strings.Lines(shown) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "psql ") {
			if answer, err := in.Run(ctx, command); err != nil || !strings.Contains(answer, ",t)") {
				w.problemf("what dev says to try does not work: %s: %v: %s", command, err, strings.TrimSpace(answer))
			}
			return ctx.Err()
		}
	}
	w.problemf("dev says nothing to try with psql")
	return nil
}

// WalkModule has a module written and types the commands of its README.
func WalkModule(ctx context.Context, in Terminal, patience time.Duration) (*Walked, error) {
	w := &Walked{Commands: 1} // this one is typed as well:
	begun := time.Now()
	if shown, err := in.Run(ctx, "outboxctl init shop"); err != nil {
		w.problemf("init failed: %v: %s", err, shown)
		return w, ctx.Err()
	}
	in.Folder = filepath.Join(in.Folder, "shop")
	readme, err := os.ReadFile(filepath.Join(in.Folder, "README.md"))
	if err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	block := blockPattern.FindStringSubmatch(string(readme))
	if block == nil || len(lines(block[2])) != 2 {
		w.problemf("the module's README does not begin with two commands")
		return w, nil
	}
	commands := lines(block[2])
	w.Commands += len(commands)
	relay, err := in.Start(ctx, commands[0])
	if err != nil {
		return nil, err
	}
	defer func() {
		// `go run` exits with 1 after every Ctrl-C: what counts is what the program says.
		if err := relay.Stop(patience); !strings.Contains(relay.Shown(), "the relay has stopped\n") {
			w.problemf("%s ended badly: %v", commands[0], err)
		}
	}()
	if err := relay.Await(ctx, regexp.MustCompile(`(?m)^the relay runs`), patience); err != nil {
		w.problemf("%v", err)
		return w, ctx.Err()
	}
	if shown, err := in.Run(ctx, commands[1]); err != nil {
		w.problemf("%s failed: %v: %s", commands[1], err, shown)
	}
	mail := regexp.MustCompile(`(?m)^mail to .*$`)
	if err := relay.Await(ctx, mail, patience); err != nil {
		w.problemf("the event was not handled: %v", err)
		return w, ctx.Err()
	}
	w.Seconds, w.Delivered = time.Since(begun).Seconds(), mail.FindString(relay.Shown())
	return w, nil
}
