# Every target runs in the active Python environment. `make help` lists them.
PYTHON ?= python
SHELL := /bin/bash
# tests in two processes (pytest-xdist): each begins with its share, in order, and then takes from what the other has left;
# a third would leave tests that watch a clock less room
AT_ONCE := -n 2 --dist worksteal
.PHONY: help install quickstart test test-extras slow check format bench results docs pictures release-check

help:        ## list the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

install:     ## nervex and app_zoo, editable
	$(PYTHON) -m pip install --quiet -e .

test:        ## install with the test extra, then run the test suite, in two processes
	$(PYTHON) -m pip install --quiet -e ".[test]"
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest $(AT_ONCE)

test-extras: ## install every extra that comes from a registry, then run what `make test` has skipped for lack of it
	$(PYTHON) -m pip install --quiet -c <($(PYTHON) -m pip freeze | grep '^torch==') -e ".[test,all,sumo,docs]"
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest $(AT_ONCE) --skipped-for-packages

slow:        ## the long tests: learning runs, soaks, clean installs
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -m slow --timeout 3600

check:       ## lint, format, types
	ruff check .
	ruff format --check .
	mypy

format:      ## leave every file as the formatter would
	ruff check --fix-only --quiet .
	ruff format .

bench:       ## training speed beside the peers (see benchmark/README.md)
	$(PYTHON) benchmark/train_bench.py

results:     ## the reference problems, three seeds each or twenty (only what is missing); writes docs/results.md
	$(PYTHON) benchmark/learning/run.py

docs:        ## the site of docs/ in build/site, strictly, links checked (extra docs); open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

pictures:    ## what README opens with: LunarLander by PPO (extras box2d, plot, video), five seeds, their curve and a landing; an hour
	$(PYTHON) -m nervex.entry.cli sweep lunarlander_ppo --seeds 0-4 --out build/lander
	$(PYTHON) -m nervex.entry.cli plot build/lander --out build/lander/lander --title 'LunarLander-v3 by PPO, five seeds'
	$(PYTHON) -m nervex.entry.cli eval build/lander/s4 -n 5 --gif
	cp build/lander/lander.svg docs/results
	$$($(PYTHON) -c 'from imageio_ffmpeg import *; print(get_ffmpeg_exe())') -y -i build/lander/s4/video/*best-best*.gif -vf \
	  'scale=360:-1,split[a][b];[a]palettegen[p];[b][p]paletteuse' docs/results/lander.gif

release-check: ## build sdist and wheel, install the wheel in a new virtual environment, use it from another folder
	$(PYTHON) -m pip install --quiet build
	PYTHON=$(PYTHON) bash .ci/release_check
