package console

// For the tests of what decides.
const (
	Followers = followers
	Verbs     = leastVerbs
)

// Steps is how many the story has.
func Steps() int { return len(steps) }

// TextIsFound tells whether a page shows a text.
func TextIsFound(wanted, page string) bool { return text{Text: wanted}.found(visible(page)) }
