package leaks

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Canary is a text that nobody may see.
type Canary struct {
	Name string
	// Text is of letters and digits: no escape changes it, so it is found also in the middle of what is escaped.
	Text string
}

const (
	letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	// half is how much of one is recognised: what is cut at some length may show the beginning or the end alone.
	half = 11
)

// NewCanary draws a text that is nowhere else.
func NewCanary(name string) Canary {
	text := make([]byte, 2*half)
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return Canary{Name: name, Text: string(text)}
}

// needle is one spelling of a canary.
type needle struct {
	canary, form string
	text         []byte
}

// Hit is a canary that was found.
type Hit struct {
	Canary, Form string
	// Place is where, and Around what stood there.
	Place, Around string
}

// String is a line for people.
func (h Hit) String() string {
	return fmt.Sprintf("%s (%s) in %s: %q", h.Canary, h.Form, h.Place, h.Around)
}

// Searcher finds canaries in all spellings, whatever their case.
type Searcher struct{ needles []needle }

// NewSearcher knows these canaries.
func NewSearcher(canaries []Canary) *Searcher {
	s := &Searcher{}
	for _, c := range canaries {
		for form, texts := range forms(c.Text) {
			for _, text := range texts {
				s.needles = append(s.needles, needle{c.Name, form, bytes.ToLower([]byte(text))})
			}
		}
	}
	return s
}

// forms are the spellings of a text, as they stand also in the middle of a longer one that was spelled so.
func forms(text string) map[string][]string {
	found := map[string][]string{
		"plain": {text[:half], text[half:]},
		"hex":   {hex.EncodeToString([]byte(text[:half])), hex.EncodeToString([]byte(text[half:]))},
	}
	var percent, unicode, octal, decimal strings.Builder
	for _, b := range []byte(text[:half]) {
		fmt.Fprintf(&percent, "%%%02x", b)
		fmt.Fprintf(&unicode, `\u%04x`, b)
		fmt.Fprintf(&octal, `\%03o`, b)
		fmt.Fprintf(&decimal, "%d ", b) // a []byte that was printed
	}
	found["percent"], found["json"], found["octal"] = []string{percent.String()}, []string{unicode.String()},
		[]string{octal.String()}
	found["bytes"] = []string{strings.TrimSpace(decimal.String())}
	// Base64 spells three bytes at a time: what comes before shifts it. The edges, which neighbours change, are left out.
	for shift := range 3 {
		padded := append(make([]byte, shift), text...)
		spelled := base64.RawStdEncoding.EncodeToString(padded)
		first := []int{0, 2, 3}[shift]
		last := len(padded) / 3 * 4
		found["base64"] = append(found["base64"], spelled[first:last])
	}
	reversed := []byte(text[:half])
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	found["reversed"] = []string{string(reversed)}
	return found
}

// around is how much of a place is shown beside a hit.
const around = 60

// Search returns at most one hit for each canary and spelling.
func (s *Searcher) Search(place string, text []byte) []Hit {
	lower := bytes.ToLower(text)
	var hits []Hit
	seen := map[[2]string]bool{}
	for _, n := range s.needles {
		at := bytes.Index(lower, n.text)
		if at < 0 || seen[[2]string{n.canary, n.form}] {
			continue
		}
		seen[[2]string{n.canary, n.form}] = true
		end := min(at+len(n.text)+around, len(lower))
		hits = append(hits, Hit{Canary: n.canary, Form: n.form, Place: place, Around: string(lower[max(0, at-around):end])})
	}
	return hits
}
