// Package oneversion keeps modules of different minor versions from being built together. They share internal packages
// of the root module, which keep no promise from one minor version to the next, and Go would take any mix of them. Each
// of the other modules names the constant. The root module of another minor version has it under another name, and the
// compiler's error says the rule.
package oneversion

// AllPosthasteModulesMustHaveTheSameMinorVersion_v0_1 is renamed by `scripts/release prepare` with each minor version.
//
//nolint:revive // the name is what a user reads, and two numbers need something between them
const AllPosthasteModulesMustHaveTheSameMinorVersion_v0_1 = true
