// Package inbox runs the proof proof-inbox: consumers in processes of their own, real ones with the real loop of NATS
// JetStream, handle thousands of events of which many come twice, also at the same moment. The processes are killed at
// every point of package internal/crash that a consumer passes and at random moments, are made to stand still, and lose
// their Redis. Every effect is a row that nothing keeps from being there twice. At the end a checker counts.
//
// The files: plan (how much), event and feed (what is published), env (servers, tables, streams), stage and scenarios
// (who handles what under which faults), workers and process (who lives and dies), life, handler and journal (what a
// process does, and writes down), history and checker (what came of it), faults and report (I1 to I16, and the last
// line).
package inbox
