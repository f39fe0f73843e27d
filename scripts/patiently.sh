# shellcheck shell=bash
# patiently COMMAND...: what asks a package registry is asked again if it fails, four times within three minutes. A
# registry that does not answer for a moment is no fault of what is built here. In a condition bash ignores errexit
# inside COMMAND: its last command then decides.
patiently() {
	local pause code
	for pause in 5 15 45 90 0; do
		set +e
		(set -e; "$@")
		code=$?
		set -e
		[ "$code" -ne 0 ] && [ "$pause" -gt 0 ] || return "$code"
		echo "exit code $code, again in $pause s: $*" >&2
		sleep "$pause"
	done
}
