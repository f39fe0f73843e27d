package main

import (
	"os"
	"strings"
	"testing"
)

// TestThePictureShowsTheFiguresOfThePage: new figures need a new picture, by make plot.
func TestThePictureShowsTheFiguresOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/internals/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	run, err := read(string(page))
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile("../../../docs/pictures/pinned.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(drawn) != run.picture() {
		t.Error("docs/pictures/pinned.svg does not show the figures of docs/internals/benchmarks.md: make plot")
	}
}

const table = `3000 events/s in transactions of 10, 1000000 dead tuples made under every pin
phase             events/s committed  acknowledged, by third  last/first  p50         p99
unpinned          3000                3000 3000 3000          1.000       6.0 ms      23.0 ms
snapshot          3000                3000 3000 2999          1.000       4.6 ms      13.9 ms
snapshot_control  3000                67 403 326              4.857       11055.1 ms  20854.5 ms
writer            3000                3001 3000 3000          1.000       4.9 ms      9.2 ms
writer_control    3000                202 595 595             2.952       10994.2 ms  20791.8 ms
`

func TestFiguresAreRead(t *testing.T) {
	t.Parallel()
	run, err := read("text\n\n```\n" + table + "```\n")
	if err != nil {
		t.Fatal(err)
	}
	want := bar{label: "the same, read from the beginning", rate: 326, median: "11.1 s", wrong: true}
	if len(run.bars) != 5 || run.bars[2] != want || run.bars[1].rate != 2999 || run.offered != 3000 ||
		run.dead != 1000000 {
		t.Errorf("got %+v", run)
	}
	if svg := run.picture(); !strings.Contains(svg, "2,999/s, 4.6 ms") || !strings.Contains(svg, "1,000,000 dead rows") {
		t.Errorf("drawn was\n%s", svg)
	}
	for name, broken := range map[string]string{
		"no figures":     "text",
		"no such phase":  strings.ReplaceAll(table, "writer_control", "writer_other"),
		"other columns":  strings.ReplaceAll(table, "acknowledged, by third", "sent"),
		"no number":      strings.ReplaceAll(table, "67 403 326", "67 403 many"),
		"no number, p50": strings.ReplaceAll(table, "4.6 ms", "soon"),
	} {
		if _, err := read(broken); err == nil {
			t.Errorf("%s: it was drawn", name)
		}
	}
}
