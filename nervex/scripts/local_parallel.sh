#!/bin/bash
# local_parallel.sh CONFIG SEED: train in several processes of this machine.
set -euo pipefail
exec nervex -m parallel -p local -c "$1" -s "$2"
