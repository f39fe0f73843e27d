package crash

import (
	"slices"

	"github.com/posthaste-dev/posthaste/internal/crash"
)

// setting is who dies at a point, and what must be so before it can.
type setting struct {
	victim role
	// passage is at which time of coming there. Defaults to 1. Points on the server know only the first.
	passage int
	// stop tells that the relay is asked to stop in the middle of its work.
	stop bool
	// old tells that the victim does not know all types.
	old bool
	// orphaned tells that all lanes are those of a relay that is dead, and that nobody has ended.
	orphaned bool
	// parked tells that a relay that does not know all types was there before.
	parked bool
	// requested tells that events are published, and asked for again.
	requested bool
	// careful tells that relays have died before, so that events are noted before they are sent.
	isolating bool
	// suspect tells that relays have died of one event, and have noted it.
	suspect bool
	// committed tells that what a producer or an operator did before it died has happened.
	committed bool
	// duplicates tells that the death lies between a publish and its settle, so that something must come twice.
	duplicates bool
}

// settings are those of the points that need more than a relay that comes there once.
var settings = map[string]setting{
	"migrate.before":        {victim: migrates, passage: 2},
	"migrate.mid":           {victim: migrates, passage: 7},
	"migrate.after":         {victim: migrates, passage: 3},
	"emit.before_insert":    {victim: produces, passage: 9},
	"emit.after_insert":     {victim: produces, passage: 9},
	"emit.before_commit":    {victim: produces, passage: 9},
	"emit.after_commit":     {victim: produces, passage: 9, committed: true},
	"end.before":            {orphaned: true},
	"end.after":             {orphaned: true},
	"renew.before":          {passage: 2},
	"renew.after":           {passage: 2},
	"unpark.before":         {parked: true},
	"unpark.after":          {parked: true},
	"barrier.before":        {passage: 2},
	"barrier.after":         {passage: 2},
	"validate.before":       {passage: 25},
	"validate.after":        {passage: 25},
	"note.before":           {passage: 3, isolating: true},
	"note.after":            {passage: 3, isolating: true},
	"publish.before_send":   {passage: 25},
	"publish.after_send":    {passage: 25, duplicates: true},
	"publish.after_ack":     {passage: 25, duplicates: true},
	"publish.mid_batch":     {passage: 2},
	"publish.after_batch":   {passage: 2},
	"settle.before":         {passage: 2},
	"settle.mid_batch":      {duplicates: true},
	"settle.after_update":   {duplicates: true},
	"settle.after_commit":   {passage: 2},
	"park.before":           {old: true},
	"park.after":            {old: true},
	"copy.before_send":      {passage: 5, requested: true},
	"copy.after_ack":        {passage: 5, requested: true, duplicates: true},
	"copy.before_settle":    {requested: true, duplicates: true},
	"copy.after_settle":     {requested: true},
	"quarantine.before":     {suspect: true},
	"quarantine.after":      {suspect: true},
	"release.before":        {stop: true},
	"release.after":         {stop: true},
	"shutdown.after_signal": {stop: true},
	"redrive.before":        {victim: operates},
	"redrive.after_insert":  {victim: operates},
	"redrive.before_commit": {victim: operates},
	"redrive.after_commit":  {victim: operates, committed: true},
}

// settingOf is the setting of a point, with what it does not say. In a trial without a point nobody is a victim.
func settingOf(point string) setting {
	s := settings[point]
	if _, known := describe(point); !known {
		return s
	}
	if s.victim == nobody {
		s.victim = relays
	}
	if s.passage == 0 {
		s.passage = 1
	}
	return s
}

// describe finds a point in the list.
func describe(point string) (d crash.Description, known bool) {
	list := crash.List()
	at := slices.IndexFunc(list, func(d crash.Description) bool { return d.Name == point })
	if at < 0 {
		return d, false
	}
	return list[at], true
}

// Points returns the names of all points that are not the consumers' or the jobs', in the order of the list.
func Points() []string {
	var names []string
	for _, d := range crash.List() {
		if !d.ByConsumers && !d.ByWorkers {
			names = append(names, d.Name)
		}
	}
	return slices.Clip(names)
}
