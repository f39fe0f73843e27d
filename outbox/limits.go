package outbox

// What an event may be at most. The database holds SQL producers to the same limits.
const (
	// MaxPayloadBytes is the default limit of a stored payload; a contract may set its own, up to
	// [MaxContractBytes].
	MaxPayloadBytes = 1 << 20
	// MaxContractBytes is the most that a contract may allow: the smallest message limit among the
	// brokers (10 MB), less room for attributes.
	MaxContractBytes = 9 << 20
	// MaxNameBytes is the limit of a namespace, an event type and an aggregate type.
	MaxNameBytes = 128
	// MaxAggregateIDBytes is the limit of an aggregate id.
	MaxAggregateIDBytes = 512
	// MaxTenantIDBytes is the limit of a tenant id.
	MaxTenantIDBytes = 128
	// MaxDedupeKeyBytes is the limit of a dedupe key.
	MaxDedupeKeyBytes = 512
	// MaxActorBytes is the limit of each field of an actor.
	MaxActorBytes = 256
	// MaxHeaders is how many headers an event may have.
	MaxHeaders = 64
	// MaxHeaderNameBytes is the limit of a header's name.
	MaxHeaderNameBytes = 128
	// MaxHeaderValueBytes is the limit of a header's value.
	MaxHeaderValueBytes = 1024
	// MaxEventsPerEmit is how many events one call may carry.
	MaxEventsPerEmit = 10_000
	// MaxBytesPerEmit is the limit of the payloads of one call together.
	MaxBytesPerEmit = 16 << 20

	maxDepth        = 64
	maxKeys         = 10_000
	maxNumberDigits = 40
	maxExponent     = 308
)
