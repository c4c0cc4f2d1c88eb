#!/bin/bash
@directives@
# Written by nervex -m parallel -p slurm. Starts Ray on the nodes of this job, trains, and ends what it started;
# other people's Ray on the same nodes is left alone.
set -euo pipefail
@setup@
export PATH=@bin@:"$PATH"
export PYTHONPATH=@pythonpath@
export OMP_NUM_THREADS=1 RAY_worker_niceness=0 RAY_DEDUP_LOGS=0 RAY_USAGE_STATS_ENABLED=0
# a node that does not answer three times in a row is gone
export RAY_health_check_period_ms=1000 RAY_health_check_timeout_ms=5000 RAY_health_check_failure_threshold=3

# Whoever has the token may run code on these nodes. It is in a file, on a file system that all nodes share, that only
# this user can read; it is gone with the job.
token=@folder@/.ray_token_"$SLURM_JOB_ID"
(umask 077 && python -c 'import secrets; print(secrets.token_hex(32), end="")' > "$token")
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$token"

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=@head@
head=${head:-${nodes[0]}}
workers=()
for node in "${nodes[@]}"; do
    if [ "$node" != "$head" ]; then workers+=("$node"); fi
done
on_head=(srun --nodes=1 --ntasks=1 --overlap --nodelist="$head")
read -r head_ip _ < <("${on_head[@]}" hostname --ip-address)
port=@port@

steps=()
stop() {
    trap - EXIT
    for ((i = ${#steps[@]} - 1; i >= 0; i--)); do # the training first, the head of Ray last
        kill -TERM "${steps[i]}" 2> /dev/null || true
        wait "${steps[i]}" || true
    done
    rm -f "$token"
}
trap stop EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# Two minutes before the time is up, or to make room for another job, slurm sends SIGUSR1: the training saves its state,
# and the job waits in the queue again. When it is started anew, however it was ended, it goes on from there.
requeue() {
    trap '' USR1
    kill -USR1 "${steps[-1]}"
    code=0
    wait "${steps[-1]}" || code=$?
    stop
    if ((code == 138)); then scontrol requeue "$SLURM_JOB_ID"; fi
    exit "$code"
}
again=()
if ((${SLURM_RESTART_COUNT:-0})) && [ -f @exp@/log/run.yaml ]; then again=(--resume @exp@); fi

# shellcheck disable=SC2016  # the node expands its own name
start='exec ray start --block --disable-usage-stats --resources="{\"host:$SLURMD_NODENAME\": 1000}" "$@"'
size=(--num-cpus=@cpus@ --num-gpus=@gpus@ --object-store-memory=@object_store@)
"${on_head[@]}" bash -c "$start" ray --head --include-dashboard=false \
    --node-ip-address="$head_ip" --port="$port" "${size[@]}" &
steps+=("$!")
for ((try = 0; try < 60; try++)); do
    if (exec 3<> "/dev/tcp/$head_ip/$port") 2> /dev/null; then break; fi
    sleep 1
done
if ((${#workers[@]})); then
    srun --nodes="${#workers[@]}" --ntasks="${#workers[@]}" --overlap --nodelist="$(
        IFS=,
        echo "${workers[*]}"
    )" bash -c "$start" ray --address="$head_ip:$port" "${size[@]}" &
    steps+=("$!")
fi
python -m nervex.parallel.submission "$head_ip:$port" "${#nodes[@]}"

"${on_head[@]}" python -m nervex.entry.cli @command@ --address "$head_ip:$port" "${again[@]}" &
steps+=("$!")
trap requeue USR1
wait "${steps[-1]}"
