package planted

import bugs "github.com/posthaste-dev/posthaste/internal/planted"

// Mistake is one that can be made in the code, and what must find it.
type Mistake struct {
	Name string
	// What says in a sentence what the code does wrong.
	What string
	// Of is the fault or the promise that the right code is about, as docs/faults.md calls it.
	Of    string
	proof proof
	// variable is the environment variable by whose value a process makes it.
	variable string
}

// Proof is the proof that must find it, as one types it.
func (m *Mistake) Proof() string { return m.proof.String() }

// Mistakes are all of them: those that the code has behind the build tag, and the mutants.
func Mistakes() []Mistake {
	proofs := table()
	var all []Mistake
	for _, d := range bugs.List() {
		all = append(all, Mistake{Name: string(d.Bug), What: d.Mistake, Of: d.Of, proof: proofs[d.Bug], variable: "POSTHASTE_PLANTED"})
	}
	for _, m := range mutants() {
		all = append(all, Mistake{Name: m.name, What: m.mistake, Of: m.of, proof: m.proof, variable: chosenVariable})
	}
	return all
}
