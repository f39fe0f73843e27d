package quickstart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Chapter is a page, or a section of one, whose blocks are run.
type Chapter struct {
	Page, Section string
	// First is typed before it, for what its blocks that are not run would have made.
	First string
}

// chapters are all of them.
var chapters = []Chapter{
	{Page: "README.md"},
	{Page: "docs/tutorial.md"},
	{Page: "docs/outbox.md", Section: "What a new team member does first", First: "outboxctl migrate up"},
}

// Blocks is what came of the blocks of pages.
type Blocks struct {
	All, Run, Compiled, Compared int
	// NotRun are those that nobody runs, with the reason.
	NotRun   []string
	Problems []string
}

// Add adds those of another page.
func (b *Blocks) Add(more *Blocks) {
	b.All, b.Run, b.Compiled, b.Compared = b.All+more.All, b.Run+more.Run, b.Compiled+more.Compiled,
		b.Compared+more.Compared
	b.NotRun, b.Problems = append(b.NotRun, more.NotRun...), append(b.Problems, more.Problems...)
}

// Runner runs the blocks of a page.
type Runner struct {
	In Terminal
	// Scratch is a folder for what is no page's.
	Scratch string
	// Version is that of the modules that blocks in Go are compiled with.
	Version string
	// Patience only ends a hang.
	Patience time.Duration
	blocks   *Blocks
	main     *Session
	stays    map[string]*Running
	last     *Block // of a shell or of SQL, whose output a text shows
	lastSQL  string
	packages map[string][]Block
}

func (r *Runner) problemf(block *Block, format string, args ...any) {
	r.blocks.Problems = append(r.blocks.Problems, block.problem(format, args...))
}

// runPages runs the blocks of every page, each on a database of its own.
func (e *env) runPages(ctx context.Context) error {
	found := make([]*Blocks, len(chapters))
	var all errgroup.Group
	for i, chapter := range chapters {
		all.Go(func() (err error) {
			found[i], err = e.runPage(ctx, chapter, i)
			return err
		})
	}
	err := all.Wait()
	for _, blocks := range found {
		if blocks != nil {
			e.report.Blocks.Add(blocks)
		}
	}
	return err
}

func (e *env) runPage(ctx context.Context, chapter Chapter, number int) (*Blocks, error) {
	text, err := os.ReadFile(filepath.Join(e.Root, chapter.Page))
	if err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	database := fmt.Sprintf("_page%d", number)
	r := &Runner{
		Scratch: filepath.Join(e.Folder, fmt.Sprintf("page%d", number)), Version: cmp.Or(e.Version, "latest"),
		Patience: patience, In: e.in.With("DATABASE_URL="+e.url(database, ""), "PGDATABASE="+e.unique+database),
	}
	r.In.Folder = filepath.Join(r.Scratch, "empty")
	if err := os.MkdirAll(r.In.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	if chapter.First != "" {
		if shown, err := r.In.Run(ctx, chapter.First); err != nil {
			return nil, fmt.Errorf("quickstart: %s: %w: %s", chapter.First, err, shown)
		}
	}
	return r.RunBlocks(ctx, chapter.Page, string(text), chapter.Section)
}

// RunBlocks runs the blocks of a page in their order. The first that fails ends the page, because others build on it.
func (r *Runner) RunBlocks(ctx context.Context, page, text, section string) (_ *Blocks, err error) {
	blocks, problems := ReadBlocks(page, text, section)
	r.blocks = &Blocks{All: len(blocks), Problems: problems}
	r.stays, r.packages = map[string]*Running{}, map[string][]Block{}
	if r.main, err = r.In.Open(ctx, filepath.Join(r.Scratch, "typed")); err != nil {
		return nil, err
	}
	defer func() {
		r.stop()
		r.main.Close()
	}()
	for i := range blocks {
		if err := r.one(ctx, &blocks[i]); ctx.Err() != nil {
			return nil, fmt.Errorf("quickstart: %w", ctx.Err())
		} else if err != nil {
			r.problemf(&blocks[i], "%v", err)
			return r.blocks, nil
		}
	}
	return r.blocks, r.compile(ctx)
}

// one runs one block, or lets it be.
func (r *Runner) one(ctx context.Context, block *Block) error {
	if reason, notRun := block.Notes[noteNotRun]; notRun {
		r.blocks.NotRun = append(r.blocks.NotRun, fmt.Sprintf("%s: %s: %s", block.At(), block.first(), reason))
		return nil
	}
	switch block.Language {
	case "sh":
		return r.shell(ctx, block)
	case "sql":
		return r.sql(ctx, block)
	case "go":
		return r.source(block)
	case "text":
		return r.compare(ctx, block)
	}
	return fmt.Errorf("nobody can run %q: say why above it (<!-- %s: reason -->)", block.Language, noteNotRun)
}

func (r *Runner) shell(ctx context.Context, block *Block) (err error) {
	r.blocks.Run++
	if name, stays := block.Notes[noteStays]; stays {
		// A new terminal knows nothing of where the first one has gone.
		r.stays[name], err = r.In.Start(ctx, block.Text)
		return err
	}
	r.last, r.lastSQL = block, ""
	if err := r.main.Type(ctx, block.Text, r.Patience); err != nil {
		return fmt.Errorf("%w; it showed: %s", err, strings.TrimSpace(r.main.Last()))
	}
	return nil
}

func (r *Runner) sql(ctx context.Context, block *Block) (err error) {
	r.blocks.Run++
	file := filepath.Join(r.Scratch, fmt.Sprintf("line-%d.sql", block.Line))
	if err := os.WriteFile(file, []byte(block.Text), 0o600); err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	r.last = block
	if r.lastSQL, err = r.In.Run(ctx, `psql -X -q -v ON_ERROR_STOP=1 -f '`+file+`' "$DATABASE_URL"`); err != nil {
		return fmt.Errorf("%w; it showed: %s", err, strings.TrimSpace(r.lastSQL))
	}
	return nil
}

// compare waits until what a text shows is on screen.
func (r *Runner) compare(ctx context.Context, block *Block) error {
	r.blocks.Compared++
	name, ofOther := block.Notes[noteShownBy]
	if ofOther {
		terminal := r.stays[name]
		if terminal == nil {
			return fmt.Errorf("there is no terminal %q", name)
		}
		// A compiler may take long; what is there already is shown soon.
		return terminal.awaitText(ctx, r.Patience/3, func() string { return Differs(block.Text, terminal.Shown(), true) })
	}
	switch {
	case r.last == nil:
		return errors.New("no command is above it whose output it could be")
	case r.last.Language == "sql":
		return different(Differs(block.Text, r.lastSQL, false))
	}
	return different(Differs(block.Text, r.main.Last(), false))
}

func different(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// stop ends what still runs, as Ctrl-C does.
func (r *Runner) stop() {
	for name, running := range r.stays {
		if err := running.Stop(r.Patience); err != nil && !interrupted(err) {
			r.blocks.Problems = append(r.blocks.Problems, fmt.Sprintf("%s ended badly: %v", name, err))
		}
	}
}

// interrupted tells whether a program that knows nothing of Ctrl-C has ended by it.
func interrupted(err error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return false
	}
	status, isStatus := exit.Sys().(syscall.WaitStatus)
	return isStatus && status.Signaled() && status.Signal() == syscall.SIGINT
}

var packagePattern = regexp.MustCompile(`(?m)^package (\w+)$`)

// source keeps a block in Go for the compiler: those of one package are compiled together.
func (r *Runner) source(block *Block) error {
	name := packagePattern.FindStringSubmatch(block.Text)
	if name == nil {
		return errors.New("it is no whole file: a package clause is missing")
	}
	r.packages[name[1]] = append(r.packages[name[1]], *block)
	r.blocks.Compiled++
	return nil
}

var importPattern = regexp.MustCompile(`"(` + regexp.QuoteMeta(ours) + `[^"]*)"`)

// compile compiles what blocks in Go say, in a module outside of the repository.
func (r *Runner) compile(ctx context.Context) error {
	if len(r.packages) == 0 {
		return nil
	}
	in := r.In
	in.Folder = filepath.Join(r.Scratch, "module")
	var imports []string
	for name, blocks := range r.packages {
		folder := filepath.Join(in.Folder, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
		for _, block := range blocks {
			// The compiler names lines of the page.
			text := fmt.Sprintf("//line %s:%d\n%s", block.Page, block.Line+1, block.Text)
			file := filepath.Join(folder, fmt.Sprintf("line_%d.go", block.Line))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return fmt.Errorf("quickstart: %w", err)
			}
			for _, match := range importPattern.FindAllStringSubmatch(block.Text, -1) {
				imports = append(imports, match[1]+"@"+r.Version)
			}
		}
	}
	slices.Sort(imports)
	get := "true"
	if imports = slices.Compact(imports); len(imports) > 0 {
		get = "go get " + strings.Join(imports, " ")
	}
	shown, err := in.Run(ctx, "go mod init example.com/page && "+get+" && go build -mod=mod ./...")
	if err != nil {
		r.blocks.Problems = append(r.blocks.Problems, "what is shown in Go does not compile: "+strings.TrimSpace(shown))
	}
	return nil
}
