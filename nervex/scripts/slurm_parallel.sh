#!/bin/bash
# slurm_parallel.sh CONFIG SEED PARTITION LEARNER_NODES ACTOR_NODES: train on nodes of a slurm cluster.
set -euo pipefail
exec nervex -m parallel -p slurm -c "$1" -s "$2" -o "parallel.slurm.partition=$3" -lh "$4" -ah "$5"
