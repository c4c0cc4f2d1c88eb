#!/bin/bash
# local_serial.sh CONFIG SEED: train in one process.
set -euo pipefail
exec nervex -m serial -c "$1" -s "$2"
