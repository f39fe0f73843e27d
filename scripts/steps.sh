# shellcheck shell=bash
# How .ci/run and scripts/proofs run a command: within a limit of time, its output in a file, and gone with whoever
# started it.

# bounded SECONDS LOG COMMAND...: runs a command with its output in LOG. One that hangs is ended with SIGQUIT, at which a
# Go program prints where it stands. A signal to the caller ends the command with everything that it has started:
# `timeout` leads a process group of its own, which a Ctrl-C does not reach.
bounded() {
	local seconds=$1 log=$2 pid
	shift 2
	timeout --signal QUIT --kill-after 30 "$seconds" "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# shellcheck disable=SC2064 # now, while the pid is known
	trap "kill -s TERM -- -$pid 2>/dev/null; exit 130" INT TERM
	wait "$pid"
	local status=$?
	trap - INT TERM
	return "$status"
}
