#!/usr/bin/env bash
# Google Research Football into the Python environment that is active, on Debian or Ubuntu (as root, or with sudo):
#
#     bash app_zoo/gfootball/install.sh
#
# The package has no wheel: pip compiles the engine, some ten minutes on two cores. It is loaded by the system's own
# Python of the same version as the environment's (python3-dev), so both must agree.
set -euo pipefail
version=2.10.2
libraries='build-essential cmake python3-dev libsdl2-dev libsdl2-image-dev libsdl2-ttf-dev libsdl2-gfx-dev
    libboost-python-dev libboost-thread-dev libboost-system-dev libboost-filesystem-dev libegl1-mesa-dev libgl1-mesa-dev'
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
$sudo apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq $libraries
bin=$(dirname "$(python -c 'import sys; print(sys.executable)')")
python -m pip install psutil wheel 'setuptools<81' six absl-py opencv-python-headless 'gym==0.26.2'
# its build script asks the first python3 of the path for psutil, so that it cannot be isolated; and of what it names
# as needed, pygame and scipy are for playing by keyboard
PATH=$bin:$PATH python -m pip install --no-deps --no-build-isolation "gfootball==$version"
python -c 'from gfootball.env import football_env_core; print("gfootball is there")'
