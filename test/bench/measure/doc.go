// Package bench holds what the benchmarks share: blocks interleaved with an A/A control, ratios with
// their spread, meters for WAL, CPU and round trips, and a scratch database to run in.
//
// The machines that run benchmarks are shared and noisy, so nothing here is about absolute speed. Every
// figure is a ratio of two subjects that took turns in one run, and the ratio of a subject to itself, its
// A/A control, says how small a difference that run can see. A goal inside that resolution is undecided.
//
// It does not promise that two runs agree on anything but ratios.
package bench
