# shellcheck shell=bash
# What every server file can rely on: where things are, how a process is started, recognised and
# stopped, and default answers that a server file overrides.

# shellcheck source=services/settings.env
source "$here/settings.env"
# shellcheck source=scripts/patiently.sh
source "$here/../scripts/patiently.sh"

# A second set of servers beside the first: give it its own directory and move every port.
if ((${POSTHASTE_SERVICES_PORT_SHIFT:-0} != 0)); then
  for port_name in "${!PORT_@}"; do
    printf -v "$port_name" '%d' $((${!port_name} + POSTHASTE_SERVICES_PORT_SHIFT))
  done
fi

# Debian keeps pgbouncer and useradd where a plain user's PATH does not look.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# A caller's PGHOST, PGOPTIONS or PGPASSWORD must not change what our probes see.
unset "${!PG@}"
umask 022

repository=$(cd "$here/.." && pwd)

if [[ -n ${POSTHASTE_SERVICES_DIR:-} ]]; then
  STATE_DIR=$POSTHASTE_SERVICES_DIR
elif ((EUID == 0)); then
  # Not root's home: the servers run as another user, who may not enter it.
  STATE_DIR=/var/tmp/posthaste-services
else
  STATE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/posthaste/services
fi
[[ $STATE_DIR == /* ]] || STATE_DIR=$PWD/$STATE_DIR
TOOLS=$STATE_DIR/tools

# PostgreSQL and PgBouncer refuse to run as root. One user for all servers, and never Debian's
# "postgres", so that the owner of the data does not depend on which packages came first.
SERVICE_USER=posthaste

# --- words -----------------------------------------------------------------------------------------

row() { printf '%-11s %-10s %s\n' "$1" "$2" "$3"; }

fail() {
  printf 'services: %s\n' "$1" >&2
  if (($# > 1)); then printf '  %s\n' "${@:2}" >&2; fi
  exit 1
}

seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'; }

# --- the state directory ---------------------------------------------------------------------------

prepare_state_dir() {
  mkdir -p "$STATE_DIR"/{tools,data,log,run}
  # The default place for root is in a directory that everybody can write to.
  [[ -O $STATE_DIR ]] || fail "$STATE_DIR belongs to somebody else" "set POSTHASTE_SERVICES_DIR"
  # A Unix socket's path has 107 characters at most; ours end in /run/postgres18/.s.PGSQL.15418.
  ((${#STATE_DIR} <= 70)) || fail "the path $STATE_DIR is too long for Unix sockets" \
    "set POSTHASTE_SERVICES_DIR to a path of 70 characters or fewer"
  if ((EUID == 0)); then
    id "$SERVICE_USER" >/dev/null 2>&1 || useradd --system --user-group --no-create-home \
      --home-dir /nonexistent --shell /usr/sbin/nologin "$SERVICE_USER"
    as_service test -x "$STATE_DIR/data" || fail "the user $SERVICE_USER cannot enter $STATE_DIR" \
      "set POSTHASTE_SERVICES_DIR to a directory that other users can enter"
  fi
}

# Two runs at once would start a server twice. launch closes the descriptor in the servers, or the
# first one would hold the lock for as long as it runs.
lock_state_dir() {
  exec 9>"$STATE_DIR/run/lock"
  flock -w 900 9 || fail "another run holds $STATE_DIR/run/lock for 15 minutes"
}

as_service() {
  if ((EUID == 0)); then
    setpriv --reuid="$SERVICE_USER" --regid="$SERVICE_USER" --clear-groups "$@"
  else
    "$@"
  fi
}

# A directory that the server may write to.
own_directory() {
  mkdir -p "$1"
  if ((EUID == 0)); then chown "$SERVICE_USER:$SERVICE_USER" "$1"; fi
}

# --- processes -------------------------------------------------------------------------------------

# "PID START BOOT" names one process forever: a pid alone is reused, and means nothing after a reboot.
identity_of() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The command name, in brackets, may contain spaces: count the fields after it.
  read -ra fields <<<"${stat##*) }"
  [[ ${fields[0]} != Z ]] || return 1
  echo "$1 ${fields[19]} $(</proc/sys/kernel/random/boot_id)"
}

# pid_of NAME: the pid if the process that we started still runs.
pid_of() {
  local file=$STATE_DIR/run/$1.pid identity
  [[ -s $file ]] || return 1
  identity=$(<"$file")
  [[ $(identity_of "${identity%% *}") == "$identity" ]] || return 1
  echo "${identity%% *}"
}

# launch NAME [VARIABLE=VALUE...] COMMAND...: starts a server that outlives the caller: a session of
# its own, no input, and none of the caller's descriptors, which would keep a CI pipe open. It gets a
# clean environment, so that it behaves the same whoever starts it.
launch() {
  local name=$1 log=$STATE_DIR/log/$1.log pid
  shift
  if [[ -s $log ]]; then mv -f "$log" "$log.1"; fi
  (
    cd "$STATE_DIR/data/${name%%-*}"
    for descriptor in /proc/self/fd/*; do
      descriptor=${descriptor##*/}
      if ((descriptor > 2 && descriptor < 255)); then eval "exec $descriptor>&-"; fi
    done
    as_service=()
    if ((EUID == 0)); then
      as_service=(setpriv --reuid="$SERVICE_USER" --regid="$SERVICE_USER" --clear-groups)
    fi
    exec setsid ${as_service[@]+"${as_service[@]}"} env -i PATH="$PATH" HOME="$PWD" LANG=C.UTF-8 TZ=UTC "$@"
  ) </dev/null >"$log" 2>&1 &
  pid=$!
  identity_of "$pid" >"$STATE_DIR/run/$name.pid" || true
}

# terminate NAME [SIGNAL]: asks with SIGNAL, and after 30 seconds kills the whole session.
terminate() {
  local name=$1 signal=${2:-TERM} pid tries
  pid=$(pid_of "$name") || { rm -f "$STATE_DIR/run/$name.pid"; return 0; }
  kill -s "$signal" "$pid" 2>/dev/null || true
  for ((tries = 0; tries < 300; tries++)); do
    pid_of "$name" >/dev/null || break
    sleep 0.1
  done
  if pid_of "$name" >/dev/null; then
    row "$name" "killed" "pid $pid did not stop within 30 s of SIG$signal"
    kill -s KILL -- "-$pid" 2>/dev/null || kill -s KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$STATE_DIR/run/$name.pid"
}

# --- installing ------------------------------------------------------------------------------------

# package COMMAND PACKAGE: prints PACKAGE if COMMAND (a name or a path) is not there.
package() { command -v "$1" >/dev/null || echo "$2"; }

# program COMMAND HINT: for what Debian does not have in the version that we need.
program() { command -v "$1" >/dev/null || fail "$NAME needs the program '$1'" "$2"; }

# quietly LOG PROBLEM COMMAND...: sends the output to LOG; if COMMAND fails, shows the end of it, says
# PROBLEM and exits. Never call it in a condition: bash then ignores errexit inside COMMAND.
quietly() {
  local log=$1 problem=$2 code
  shift 2
  set +e
  (set -e; "$@") >"$log" 2>&1 </dev/null 9>&-
  code=$?
  set -e
  ((code != 0)) || return 0
  tail -n 20 "$log" | sed 's/^/  | /' >&2
  fail "${NAME:-apt}: $problem" "the whole output is in $log"
}

install_packages() {
  local missing began=$EPOCHREALTIME
  (($#)) || return 0
  missing=$(printf '%s\n' "$@" | sort -u | paste -sd ' ')
  ((EUID == 0)) || fail "Debian packages are missing; install them with" \
    "sudo apt-get update && sudo apt-get install --yes --no-install-recommends $missing"
  command -v apt-get >/dev/null || fail "no apt-get here to install: $missing"
  # shellcheck disable=SC2086  # a list of words
  quietly "$STATE_DIR/log/apt.log" "could not install $missing" install_quietly $missing
  row apt installed "$missing ($(seconds_since "$began"))"
}

# We want the programs, not Debian's default instance of each: it must not start now (policy-rc.d),
# nor at the next boot (systemctl disable, for units that were not there before).
install_quietly() {
  local unit fresh=()
  for unit in postgresql pgbouncer redis-server rabbitmq-server; do
    [[ -e /lib/systemd/system/$unit.service ]] || fresh+=("$unit")
  done
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
  fi
  export DEBIAN_FRONTEND=noninteractive
  patiently fetch_packages "$@"
  [[ -d /run/systemd/system ]] || return 0
  for unit in ${fresh[@]+"${fresh[@]}"}; do
    [[ ! -e /lib/systemd/system/$unit.service ]] || systemctl disable --now "$unit" || true
  done
}

# The list again each time: where it could not be read, apt goes on with an old one and finds no package. Another apt,
# for example of a machine that has just started, may hold the lock for a while.
fetch_packages() {
  apt-get -o DPkg::Lock::Timeout=300 update
  apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install --yes --no-install-recommends "$@"
}

# unpacked DIRECTORY DOWNLOAD [PREPARE]: makes DIRECTORY in a scratch directory that is renamed at the end, so that an
# interrupted install is never taken for a whole one. DOWNLOAD fetches; PREPARE is the first to use what came, when it
# has proved to be what we pinned. A wrong sum is not asked for again: it would stay wrong.
unpacked() {
  local directory=$1 began=$EPOCHREALTIME log=$STATE_DIR/log/$NAME-install.log
  [[ ! -d $directory ]] || return 0
  rm -rf "$TOOLS/.new-$NAME"
  mkdir "$TOOLS/.new-$NAME"
  cd "$TOOLS/.new-$NAME" || exit
  quietly "$log" "could not be downloaded" patiently "$2"
  quietly "$log" "is not what we pinned in services/sums" verified
  quietly "$log" "could not be installed" "${3:-true}"
  # Another user runs what root installed.
  chmod -R a+rX .
  mv -T "$TOOLS/.new-$NAME" "$directory"
  row "$NAME" installed "$(version) ($(seconds_since "$began"))"
}

# verified: everything below the current directory has the sum that the server's list in sums/ has for it. What the list
# does not name is refused as well. Modules are compared by the go command, when it builds.
verified() {
  local list file
  if [[ -e $here/sums/$NAME.sum ]]; then
    cp "$here/sums/$NAME.sum" go.sum
    return
  fi
  list=$(echo "$here/sums/$NAME".sha*)
  while IFS= read -r file; do
    awk -v name="$file" '$2 == name { found = 1 } END { exit !found }' "$list" ||
      { echo "$file has no line in ${list#"$repository"/}" && exit 1; }
  done < <(find . -type f -printf '%P\n')
  "${list##*.}sum" --check --strict --quiet --ignore-missing "$list"
}

# go_tool DIRECTORY PACKAGE: builds a Go program in the version of sums/NAME.mod, if its modules have the sums of
# sums/NAME.sum. The build asks no registry: what it did not compare before would come in.
go_tool() {
  program go "install the Go version of go.mod"
  go_package=$2
  unpacked "$1" go_download go_build
}

# The checksum database is not asked: our own sums come next, and decide.
go_download() {
  cp "$here/sums/$NAME.mod" go.mod
  GOFLAGS=-mod=mod GOSUMDB=off GOWORK=off go mod download
}

go_build() { GOFLAGS=-mod=readonly GOPROXY=off GOWORK=off go build -o "$PWD/" "$go_package"; }

# --- one server: defaults that NAME.sh overrides -----------------------------------------------------

load_server() {
  NAME=$1
  DATA=$STATE_DIR/data/$NAME
  LOG=$STATE_DIR/log/$NAME.log
  # shellcheck source=/dev/null
  source "$here/$NAME.sh"
}

requires() { :; } # names of servers that must run as well
packages() { :; } # missing Debian packages; see package
install() { :; }  # everything else that is missing
stop() { terminate "$NAME"; }
hint() { echo "see $LOG"; } # what to try when it does not start
patience=300                # seconds until "not ready" is a failure; a slow machine needs a tenth of it
# Without a default: version, address, start, ready, check, exports.

# bounded SECONDS FUNCTION: runs a function of this server in a process of its own that cannot hang.
bounded() { timeout "$1" "$BASH" "$here/services" "@$NAME" "$2" 2>&1; }
answers() { bounded 5 ready >/dev/null; }

begin() {
  if pid_of "$NAME" >/dev/null; then return; fi
  rm -f "$STATE_DIR/run/$NAME.pid"
  own_directory "$DATA"
  echo "$EPOCHREALTIME" >"$STATE_DIR/run/$NAME.began"
  start
}

await() {
  local began_file=$STATE_DIR/run/$NAME.began deadline=$((SECONDS + patience)) took
  until answers; do
    if ! pid_of "$NAME" >/dev/null; then
      explain "it stopped while starting"
    elif ((SECONDS > deadline)); then
      explain "it does not answer after $patience s"
    fi
    sleep 0.1
  done
  if [[ -e $began_file ]]; then
    took=$(seconds_since "$(<"$began_file")")
    rm -f "$began_file"
    row "$NAME" up "$(address) pid $(pid_of "$NAME") ($took)"
  else
    row "$NAME" "was up" "$(address) pid $(pid_of "$NAME")"
  fi
}

explain() {
  row "$NAME" failed "$1; the end of $LOG:" >&2
  tail -n 20 "$LOG" 2>/dev/null | sed 's/^/  | /' >&2
  echo "  hint: $(hint)" >&2
  exit 1
}

end() {
  local pid
  pid=$(pid_of "$NAME") || pid=
  stop
  rm -f "$STATE_DIR/run/$NAME.began"
  if [[ -n $pid ]]; then row "$NAME" stopped "pid $pid"; else row "$NAME" "was down" ""; fi
}

wipe() {
  rm -rf "$DATA" "$STATE_DIR/run/$NAME"
  row "$NAME" wiped "$DATA"
}

status_row() {
  local pid state=up
  if ! pid=$(pid_of "$NAME"); then
    pid=- state=down
  elif ! answers; then
    state=mute # the process runs, but it does not answer
  fi
  printf '%-11s %-22s %-17s %-8s %-5s %s\n' "$NAME" "$(version)" "$(address)" "$pid" "$state" "$LOG"
  [[ $state == up ]]
}

timed_check() {
  local began=$EPOCHREALTIME output
  if output=$(bounded 120 check); then
    row "$NAME" checked "$output ($(seconds_since "$began"))"
  else
    row "$NAME" failed "${output:-no answer} ($(seconds_since "$began"))" >&2
    return 1
  fi
}

# expect WANTED GOT WHAT: one comparison of a check.
expect() { [[ $2 == "$1" ]] || { echo "$3: wanted '$1', got '$2'"; exit 1; }; }

debian_version() {
  local full
  full=$(dpkg-query --show --showformat '${Version}' "$1" 2>/dev/null) || full=missing
  full=${full#*:}
  echo "${full%%-*}"
}
