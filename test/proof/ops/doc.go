// Package ops runs the proof proof-ops: jobs that repair a hundred thousand dead letters and send as many published
// events once more, while live events flow. Whoever starts a job goes away, whoever works on it is killed in the middle
// of a part, and another goes on. What the broker got, what the log of actions says and what the tables have is
// compared, and what live events feel of it is measured against the time before.
package ops
