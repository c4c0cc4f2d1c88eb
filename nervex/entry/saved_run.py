"""A run that was stopped, as its folder describes it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import yaml

from nervex.utils import CheckpointError, ConfigError

# what may differ between a run and its continuation: when it ends and what is shown, not what is computed
_MAY_DIFFER = (
    'exp_name',
    'seed',
    'commander',
    'evaluator.stop_val',
    'learner.resume',
    'learner.hook',
    'learner.load_path',
    'parallel',
)


@dataclass(frozen=True)
class SavedRun:
    """Config, seed and checkpoint folder of a stopped run."""

    folder: str
    config: dict[str, Any]
    seed: int
    ckpt_path: str


def saved_run(folder: str) -> SavedRun:
    """Read the description that a run left in ``folder``; a folder without a run is an error that says so."""
    paths = [os.path.join(folder, 'log', name) for name in ('config.yaml', 'run.yaml')]
    for path in paths:
        if not os.path.isfile(path):
            raise CheckpointError(
                f'{folder}: holds no run to resume: {path} is missing; give the folder that was the '
                "run's exp_name (or its current folder)"
            )
    with open(paths[0], encoding='utf-8') as f:
        config = yaml.safe_load(f)
    with open(paths[1], encoding='utf-8') as f:
        facts = yaml.safe_load(f)
    return SavedRun(folder, config, int(facts['seed']), os.path.join(folder, facts['checkpoints']))


def check_same_run(resolved: dict[str, Any], saved: SavedRun) -> None:
    """A run is only continued with the settings that it was started with; names all that differ."""
    new, old = dict(_leaves(resolved)), dict(_leaves(saved.config))
    problems = [
        f'{path}: is {new.get(path)!r}, but the run in {saved.folder} was started with {old.get(path)!r}; resume with '
        'the same settings, or start a new run with --load'
        for path in sorted(set(new) | set(old))
        if new.get(path) != old.get(path) and not any(path == p or path.startswith(p + '.') for p in _MAY_DIFFER)
    ]
    if problems:
        raise ConfigError(problems)


def _leaves(tree: Any, path: str = '') -> list[tuple[str, Any]]:
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in _leaves(value, f'{path}.{key}' if path else str(key))]
    return [(path, list(tree) if isinstance(tree, tuple) else tree)]
