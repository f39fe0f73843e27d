package mutants

// contracting are about what a change of contracts does, and who is told before it.
var contracting = []mutant{
	{
		"check-of-what-is-ready-alone",
		"a registry is not checked against events that are parked", "RG-6",
		[]change{{
			operatorTests + "/contracts_check.go",
			"[]state.State{state.Retrying, state.Parked, state.Waiting}",
			"[]state.State{state.Retrying, state.Waiting}",
		}},
		test(operatorTests, "TestCheckRegistry", `looked=3 complete=true`),
	},
	{
		"check-cut-off-untold",
		"a check of a registry that ended at its limit says that it looked at everything", "RG-6",
		[]change{{operatorTests + "/contracts_check.go", "c.report.Complete = false", "c.report.Complete = c.left <= 0"}},
		test(operatorTests, "TestCheckRegistryIsBounded", `looked=\d+ complete=true payloads=false unpublishable=\d+`),
	},
	{
		"required-breaks-nobody",
		"a field that becomes required counts as harmless", "RG-6",
		[]change{{
			contractTests + "/diff_fields.go", `"field_required", Producers,`, `"field_required", Nobody,`,
		}},
		test(contractTests, "TestDiffOfFields", `required: got "field_required /a", want .* breaks producers"`),
	},
	{
		"reference-not-followed",
		"what changes behind a reference is not seen", "RG-6",
		[]change{{
			contractTests + "/diff_refs.go", "equal = known && stays && look(before, after)",
			"equal = known && stays || look(before, after)",
		}},
		test(contractTests, "TestDiffOfRules", `behind a reference: got "", want "limit_narrowed /a breaks producers"`),
	},
	{
		"unknown-reference-counts-as-same",
		"a reference that cannot be followed counts as unchanged, whatever it leads to", "RG-6",
		[]change{{
			contractTests + "/diff_refs.go", "equal = known && stays && look(before, after)",
			"equal = known == stays && look(before, after)",
		}},
		test(contractTests, "TestDiffOfWhatCannotBeFollowed", `another file: nothing breaks producers`),
	},
	{
		"breaking-change-behind-remarks",
		"a change that breaks somebody is not told behind a thousand that break nobody", "RG-6",
		[]change{{
			contractTests + "/diff_schema.go", "if c.told[breaks]++; c.told[breaks] <= mostChanges {",
			"if len(c.changes) < mostChanges {",
		}},
		test(contractTests, "TestDiffTellsWhatBreaks", `0 changes break producers, 500 consumers`),
	},
	{
		"removed-field-keeps-the-rules-of-others",
		"a field that loses its name is not held to the rules of other fields", "RG-6",
		[]change{{
			contractTests + "/diff_fields.go",
			"case by == additionalRule && len(Breaking(c.tried(here, field, others), Producers)) > 0:",
			"case by == noRule && len(Breaking(c.tried(here, field, others), Producers)) > 0:",
		}},
		test(contractTests, "TestDiffOfOtherFields", `got "field_removed /n breaks consumers", want .* both"`),
	},
}
