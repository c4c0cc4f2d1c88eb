#!/bin/sh
# end_with_me.sh MARK: outlive the program that holds the other end of the input, to end what would outlive it for ever.
# Reads numbers of processes until the end of its input; then ends what is left of these, what carries the mark in its
# environment, and the children of both (a process that takes a title may lose its mark). A number that meanwhile
# belongs to somebody else is left alone. Looks more than once: what is being started while it looks gets its mark a
# moment later.
end() {
    # shellcheck disable=SC2046  # several numbers
    kill -9 "$1" $(cat /proc/"$1"/task/*/children)
}
pids=
while read -r line; do pids="$pids $line"; done
for pid in $pids; do grep -aqi ray /proc/"$pid"/cmdline && end "$pid"; done
for _ in 1 2 3; do
    # shellcheck disable=SC2013  # names without spaces
    for file in $(grep -lsa "$1" /proc/[0-9]*/environ); do
        pid=${file#/proc/}
        end "${pid%/environ}"
    done
    sleep 0.2
done
