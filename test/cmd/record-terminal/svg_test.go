package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// A picture is well-formed, shows every line with its colours and its time, and nothing that the terminal was told.
func TestPicture(t *testing.T) {
	t.Parallel()
	svg := picture(`outboxctl <dev> & "more"`, []line{
		{text: "\x1b[32m✓\x1b[0m ready: {\"a\":1} & <b>"}, {text: "plain", at: 1500 * time.Millisecond},
	})
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
	for _, want := range []string{
		`<tspan fill="#7ee787">✓</tspan> ready: {&#34;a&#34;:1} &amp; &lt;b&gt;`, `animation-delay:1.5s`, ">plain<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is not in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "\x1b") {
		t.Error("the terminal's own characters are in the picture")
	}
}

// What clears the screen begins anew; lines that are too long are cut.
func TestLinesOfAScreen(t *testing.T) {
	t.Parallel()
	var s screen
	for _, text := range []string{"old\r\n", "\x1b[H\x1b[2Jnew\r\n", "sec", "ond\n", strings.Repeat("x", 300) + "\n"} {
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.lines()
	if len(got) != 3 || got[0].text != "new" || got[1].text != "second" || len([]rune(got[2].text)) != longestLine {
		t.Errorf("got %+v", got)
	}
}
