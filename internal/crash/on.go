//go:build crash

package crash

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Built tells whether points can be deadly.
const Built = true

// orders is what the environment asks for.
type orders struct {
	point   string
	passage int
	file    string
}

var read = sync.OnceValue(func() orders {
	point, number, given := strings.Cut(os.Getenv("POSTHASTE_CRASH"), ":")
	o := orders{point: point, passage: 1, file: os.Getenv("POSTHASTE_CRASH_FILE")}
	if point != "" {
		mustKnow(point)
	}
	if given {
		passage, err := strconv.Atoi(number)
		if err != nil || passage < 1 {
			panic(fmt.Sprintf("crash: POSTHASTE_CRASH: %q is not the number of a passage", number))
		}
		o.passage = passage
	}
	return o
})

var passed struct {
	sync.Mutex
	times int
}

// Point is where the process may be told to die.
func Point(name string) {
	mustKnow(name)
	o := read()
	if o.point != name {
		return
	}
	passed.Lock() // whoever comes after the one that dies waits here for the end
	passed.times++
	if passed.times < o.passage {
		passed.Unlock()
		return
	}
	die(o)
}

// die says that the point was reached and ends the process. What was written stays: only a machine's death
// would lose it.
func die(o orders) {
	if o.file != "" {
		file, err := os.OpenFile(o.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(file, "%s %d %d\n", o.point, o.passage, os.Getpid())
		}
		if err != nil {
			panic(fmt.Sprintf("crash: POSTHASTE_CRASH_FILE: %v", err))
		}
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("crash: %v", err))
	}
	select {} // for the few instructions that may be left
}

var known = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, d := range List() {
		names[d.Name] = true
	}
	return names
})

func mustKnow(name string) {
	if !known()[name] {
		panic(fmt.Sprintf("crash: no point is called %q", name))
	}
}
