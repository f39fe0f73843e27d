package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// A line is what a terminal showed in one line, and when it came.
type line struct {
	text string // with the terminal's colours
	at   time.Duration
}

// The measures of a picture, in pixels.
const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 16
	titleBar   = 34
)

// styles are the colours that outboxctl uses, as SVG has them.
var styles = map[string]string{
	"1": `font-weight="bold"`, "2": `fill="#8b949e"`, "31": `fill="#ff7b72"`, "32": `fill="#7ee787"`,
	"33": `fill="#e3b341"`,
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// picture draws a terminal in which these lines appear one after the other. Who wants no motion sees all at once.
func picture(title string, lines []line) string {
	widest := utf8.RuneCountInString(title) + 12
	for _, l := range lines {
		widest = max(widest, utf8.RuneCountInString(sgr.ReplaceAllString(l.text, "")))
	}
	width, height := int(float64(widest)*charWidth)+2*margin, titleBar+len(lines)*lineHeight+margin
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" `+
		`aria-label="%s">`+"\n", width, height, width, height, html.EscapeString(title))
	svg.WriteString("<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}" +
		"@media (prefers-reduced-motion:no-preference){.l{opacity:0;animation:a .2s forwards}}" +
		"@keyframes a{to{opacity:1}}</style>\n")
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for i, color := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&svg, `<circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", margin+6+20*i, color)
	}
	fmt.Fprintf(&svg, `<text x="%d" y="22" fill="#8b949e">%s</text>`+"\n", margin+80, html.EscapeString(title))
	for i, l := range lines {
		fmt.Fprintf(&svg, `<text class="l" style="animation-delay:%.1fs" x="%d" y="%d">%s</text>`+"\n", l.at.Seconds(),
			margin, titleBar+14+i*lineHeight, spans(l.text))
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// spans turns the terminal's colours into those of SVG.
func spans(text string) string {
	var out strings.Builder
	style := ""
	for text != "" {
		at := sgr.FindStringSubmatchIndex(text)
		piece := text
		if at != nil {
			piece = text[:at[0]]
		}
		switch escaped := html.EscapeString(piece); {
		case piece == "":
		case style == "":
			out.WriteString(escaped)
		default:
			fmt.Fprintf(&out, "<tspan %s>%s</tspan>", style, escaped)
		}
		if at == nil {
			break
		}
		style, text = styles[text[at[2]:at[3]]], text[at[1]:]
	}
	return out.String()
}
