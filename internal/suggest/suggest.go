// Package suggest finds what somebody may have meant by a name that there is not.
package suggest

import (
	"slices"
	"strings"
)

// Nearest is the nearest of the known names, or nothing where none is near.
func Nearest(name string, known []string) string {
	best, least := "", 1+len(name)/3
	if len(name) > 128 {
		return ""
	}
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		distance := edits(strings.ToLower(name), strings.ToLower(candidate))
		if distance < least || distance == least && best == "" {
			best, least = candidate, distance
		}
	}
	return best
}

// DidYouMean names it as the end of a sentence.
func DidYouMean(name string, known []string) string {
	if nearest := Nearest(name, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

// edits counts the letters to add, drop or change on the way from one word to the other.
func edits(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			change := diagonal
			if from[i] != to[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
