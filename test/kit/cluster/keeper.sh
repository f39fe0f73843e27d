# shellcheck shell=sh
# Waits for the end of its input, then ends the cluster in folder $1 and removes it.
cat >/dev/null

# All processes of a server work in its data folder.
processes() {
  for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/cwd" 2>/dev/null)" = "$1/data" ]; then echo "${process#/proc/}"; fi
  done
}

# A server that is killed leaves a small segment of shared memory behind; postmaster.pid names it.
segment=$(sed -n 7p "$1/data/postmaster.pid" 2>/dev/null | awk '{ print $2 }')

while pids=$(processes "$1") && [ -n "$pids" ]; do
  # shellcheck disable=SC2086  # a list of words
  kill -KILL $pids 2>/dev/null
  sleep 0.02
done
if [ -n "$segment" ]; then ipcrm --shmem-id "$segment" 2>/dev/null; fi
rm -rf "$1"
