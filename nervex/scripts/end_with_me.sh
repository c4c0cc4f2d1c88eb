#!/bin/sh
# end_with_me.sh MARK: outlive the program that holds the other end of the input, to end what would outlive it for ever.
# Reads numbers of processes, and a folder, until the end of its input; then ends what is left of these, what carries the
# mark in its environment, and the children of both (a process that takes a title may lose its mark), and removes the
# folder. A number that meanwhile belongs to somebody else is left alone. Looks more than once: what is being started
# while it looks gets its mark a moment later. Only who could not end in order comes to this: its last word is said here.
exec 3>&2 2> /dev/null
end() {
    # shellcheck disable=SC2046  # several numbers
    kill -9 "$1" $(cat /proc/"$1"/task/*/children)
}
pids=
folder=
while read -r line; do
    case $line in
        /*/session_*) folder=$line ;;
        *) pids="$pids $line" ;;
    esac
done
if [ -n "$folder" ]; then
    echo "nervex: the run was cut short (killed, a second signal, or the end of Ray's daemons);" \
        "--resume goes on from its newest saved state" >&3
fi
exec 3>&-
for pid in $pids; do grep -aqi ray /proc/"$pid"/cmdline && end "$pid"; done
for _ in 1 2 3; do
    # shellcheck disable=SC2013  # names without spaces
    for file in $(grep -lsa "$1" /proc/[0-9]*/environ); do
        pid=${file#/proc/}
        end "${pid%/environ}"
    done
    sleep 0.2
done
if [ -n "$folder" ]; then
    rm -rf "$folder"
    latest=${folder%/*}/session_latest
    if [ -L "$latest" ] && [ ! -e "$latest" ]; then rm -f "$latest"; fi
fi
