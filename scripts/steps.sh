# shellcheck shell=bash
# How .ci/run and scripts/proofs run a command: within a limit of time, its output in a file, and gone with whoever
# started it.

# What a make above has been told is not for the commands below it: SHORT=1 would turn a full form into a short one,
# and -i would let a failure pass.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL SHORT RESULTS DURATION

# bounded SECONDS LOG COMMAND...: runs a command with its output in LOG. One that hangs is ended with SIGQUIT, at which
# a Go program prints where it stands. A signal to the caller ends the command with everything that it has started:
# `timeout` leads a process group of its own, which a Ctrl-C does not reach. Nothing of the group outlives the command.
bounded() {
	local seconds=$1 log=$2 pid
	shift 2
	timeout --signal QUIT --kill-after 30 "$seconds" "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# shellcheck disable=SC2064 # now, while the pid is known
	trap "kill -s TERM -- -$pid 2>/dev/null; exit 130" HUP INT TERM
	wait "$pid"
	local status=$?
	trap - HUP INT TERM
	kill -s KILL -- "-$pid" 2>/dev/null
	return "$status"
}
