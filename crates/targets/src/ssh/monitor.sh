# What runs on the remote machine as long as a connection to it lasts; any POSIX shell can read it.
# Lines before this one set `base`, the folder in which ours is made, and `name`, the name of ours.
# Standard input says nothing. Its end is the end of the connection, however that came.
#
# shellcheck shell=sh disable=SC3013 # every shell that is somebody's /bin/sh knows -ef
: "${base:?}" "${name:?}"

say() {
    echo "tare-monitor: $*"
}

# Ends what runs in our folder, and removes it.
clean() {
    trap '' HUP INT TERM PIPE
    rm -f "$dir/run"
    for process in /proc/[0-9]*; do
        if [ "$process/cwd" -ef "$dir" ] && [ "$process" != "/proc/$$" ]; then
            kill -9 "${process#/proc/}" 2>/dev/null
        fi
    done
    cd / && rm -rf "$dir" && say gone
}

# Says where processes are seen and folders are not shared: a home folder may be on many machines.
here() {
    uname -n
    readlink /proc/self/ns/pid
    cat /etc/machine-id 2>/dev/null
}

# Removes what a monitor left that was killed or whose machine lost its power. A folder is left over
# if it belongs to this user, was made here, no process works in it, and it is not so young that its
# monitor might just be about to go there.
sweep() {
    find "$base" -maxdepth 1 -type d -user "$(id -u)" -name 'tare-ssh-*' -mmin +1 2>/dev/null |
        while read -r old; do
            if [ "$(cat "$old/place" 2>/dev/null)" != "$(here)" ]; then continue; fi
            for process in /proc/[0-9]*; do
                if [ "$process/cwd" -ef "$old" ]; then continue 2; fi
            done
            rm -rf "$old"
        done
}

say "system $(uname -s) $(uname -m)"
if [ "$(uname -s) $(uname -m)" != 'Linux x86_64' ]; then exit 0; fi
say "kernel $(uname -r)"
say "model $(sed -n '/^model name/{s/^[^:]*: *//p;q;}' /proc/cpuinfo)"
say "cpus $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"

umask 077
sweep
dir=$base/$name
if ! problem=$(mkdir "$dir" 2>&1); then
    say "failed $problem"
    exit 0
fi
# From here on the folder is removed whatever happens, but for SIGKILL.
trap clean EXIT
trap 'exit 0' HUP INT TERM PIPE
cd "$dir" || exit 0
here >place

# Runs the agent, and ends with its status. A line of standard input asks the agent to end, the end of it ends the agent.
cat >run <<'RUN'
cd "${0%/*}" || exit 125
agent=$1
shift
exec 3<&0
"./$agent" "$@" 3<&- </dev/null &
pid=$!
# Once it has ended, its id may be that of a stranger's process, which does not work here.
is_ours() { [ "/proc/$pid/cwd" -ef . ]; }
(
    while read -r _; do is_ours && kill -TERM "$pid"; done
    is_ours && kill -9 "$pid"
) <&3 >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$pid"
status=$?
kill -9 "$watcher"
exit "$status"
RUN
say "folder $dir"
while read -r _; do :; done
