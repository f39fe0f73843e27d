// Package config reads the configuration of a program: keys with a type, from flags, the environment, a
// YAML file and defaults, in this order of strength.
//
// A key is a Go value, so that no name is written twice:
//
//	var Batch = config.Integer("relay.batch", config.Spec[int]{Default: 500, Doc: "Events of one read."})
//
//	set := config.Set{Prefix: "POSTHASTE_", Keys: []config.AnyKey{Batch}}
//	values, err := set.Load(os.Args[1:], os.Environ())
//	n := Batch.Get(values)
//
// It promises that nothing is guessed: what it does not know is refused with the nearest name it knows, all
// problems are told at once, each with where it is, and of each value [Values.Show] tells where it came from.
// A secret comes from the environment, the file or a file of its own, never from a flag; it does not show in
// errors, in [Values.Show], in logs or in JSON. Whoever calls [Hidden.Reveal] has it in their own hands.
package config
