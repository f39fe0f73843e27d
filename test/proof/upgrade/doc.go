// Package upgrade is command proof-upgrade: the programs of an old commit and those of the working tree on one outbox,
// while its schema is migrated, while both run side by side, and when the new ones are taken back.
//
// Nothing of it looks into the programs. What they did is checked by what producers of both sides committed, what the
// database's triggers saw, what the broker got, and what consumers of both sides did.
//
// The files, in the order of a run: old (which commit), build, migrations (what both have in common), env, sides (their
// processes), run (the legs), collect, report.
package upgrade
