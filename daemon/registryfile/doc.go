// Package registryfile reads a registry of contracts from a file, for a relay that was compiled without one:
//
//	contracts:
//	  - type: order_created
//	    version: 1
//	    aggregate: vendor_order
//	    topic: orders
//	    on_dead: block
//	    max_attempts: 10
//	    schema: schemas/order_created.json
//
// Type and aggregate are needed, and a topic where there is no default one. on_dead is skip, the default: later events
// of the aggregate on the topic go on without one that died; or block: they wait behind it until somebody acts.
//
// The schema is a JSON Schema, inline or in a file beside the registry; without one, any JSON object keeps the
// contract. A schema may refer to other files in that folder and to nothing else: nothing is ever fetched.
//
// It promises that a file is taken as a whole or refused with everything that is wrong in it, and that checking
// a payload ends: it takes a bounded number of steps and survives a validator that panics. What it says about a
// payload names places and rules, never values. Formats are checked as the schema's draft says: from 2019-09 on
// they are remarks.
package registryfile
