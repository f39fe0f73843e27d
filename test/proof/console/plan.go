package console

import "time"

// Plan says how much a proof does.
type Plan struct {
	// URL is the server, as a role that may create databases.
	URL string
	// Part is a piece of the name of the only part to run, for whoever works on it; then the proof is not ok. Empty: all.
	Part string
	// Folder is for what a failed run leaves.
	Folder string
	// Pictures is the folder that gets a picture of every page; empty: none.
	Pictures string
	// TimesDecide tells that the time until something is seen decides. Otherwise it is printed.
	TimesDecide bool
	// Paints is how often each page is opened to measure that.
	Paints int
	// Themes is in how many themes axe looks at each page: in both, or in one by turns, which takes half as long.
	Themes int
	// Orders is how many orders the shop has before somebody looks.
	Orders int
	// Customers have each Invoices that died of the same error.
	Customers, Invoices int
	// Patience ends what hangs.
	Patience time.Duration
}

// Long is the full form.
func Long() Plan {
	p := Short()
	p.TimesDecide, p.Paints, p.Themes, p.Orders = true, 15, 2, 2_000
	return p
}

// Short is for every change.
func Short() Plan {
	return Plan{Paints: 1, Themes: 1, Orders: 200, Customers: 20, Invoices: 3, Patience: 5 * time.Minute}
}
