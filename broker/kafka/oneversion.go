package kafka

import "github.com/posthaste-dev/posthaste/internal/oneversion"

// It does not compile beside a root module of another minor version.
const _ = oneversion.AllPosthasteModulesMustHaveTheSameMinorVersion_v0_1
