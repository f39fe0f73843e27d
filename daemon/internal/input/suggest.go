package input

import (
	"slices"
	"strings"
)

// DidYouMean names the nearest of the known names, as the end of a sentence, or nothing where none is near.
func DidYouMean(name string, known []string) string {
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
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
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
