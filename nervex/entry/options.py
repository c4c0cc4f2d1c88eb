"""What the command lines take, each option declared once: ``-m MODE`` takes the flags, a sub-command some of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

SEED = click.IntRange(0, 2**31 - 1)


def taking(*parts: Callable) -> Callable[[Callable], Callable]:
    """A function with these options and arguments, in this order."""

    def decorated(function: Callable) -> Callable:
        for part in reversed(parts):
            function = part(function)
        return function

    return decorated


# ---- names for shell completion, found when they are asked for ----
def completed(list_names: Callable[[], Any]) -> Callable[..., list[str]]:
    """What completes a word to one of these names."""
    return lambda ctx, param, incomplete: sorted(name for name in list_names() if name.startswith(incomplete))


def policies() -> list[str]:
    """All registered policies."""
    from nervex.utils.registry_factory import POLICY_REGISTRY

    return list(POLICY_REGISTRY.query())


def configs() -> list[str]:
    """The built-in configs, and what lies here."""
    from nervex.config import builtin_configs

    return [*builtin_configs(), *os.listdir()]


def envs() -> list[str]:
    """The registered envs, and those of Gymnasium."""
    from nervex.utils.registry_factory import ENV_REGISTRY

    return [*ENV_REGISTRY.query(), *gymnasium_ids()]


def gymnasium_ids() -> list[str]:
    """The newest version of each env that Gymnasium knows by itself."""
    import gymnasium

    newest = {spec.name: spec.id for spec in gymnasium.registry.values() if spec.namespace is None}
    return [env_id for name, env_id in newest.items() if not name.startswith('GymV')]


# ---- what several command lines take ----
seed = click.option('-s', '--seed', type=SEED, help='Seed; drawn and shown if left out, 0 for what only plays.')
episodes = click.option(
    '-n', '--episodes', type=click.IntRange(min=1), help='How many episodes; of an arena, games of each pair (100).'
)
override = click.option(
    '-o',
    '--override',
    multiple=True,
    metavar='PATH=VALUE',
    help='Change a setting, e.g. -o policy.learn.learning_rate=3e-4; repeatable.',
)
load = click.option(
    '--load',
    metavar='RUN',
    help='Checkpoint, or run for its best one: to play with, or to begin with its weights. Its run has the config '
    'where none is given.',
)
trust = click.option('--trust', is_flag=True, help='Run code that the folder holds or names, though not from you.')
data = click.option('--data', multiple=True, metavar='PATH', help='Trajectories to learn from offline; repeatable.')
opponent = click.option(
    '--opponent', metavar='PLAYER', help='In a game of two sides: a run, a checkpoint, random, a player, human.'
)
video = click.option('--video', is_flag=True, help='Save the best and the worst episode of an evaluation as mp4.')
gif = click.option('--gif', is_flag=True, help='The same as gif.')
render = click.option('--render', is_flag=True, help='Show the episodes of an evaluation in a window.')
address = click.option('--address', metavar='HOST:PORT', help='Running Ray cluster to join.')
out = click.option(
    '--out', metavar='NAME', help='plot writes NAME.png and NAME.svg (curves), collect fills the folder NAME (data).'
)
acts = click.option(
    '--acts',
    type=click.Choice(['greedy', 'sampled', 'random']),
    default='greedy',
    show_default=True,
    help='What collect plays: the best actions, those that the policy draws while it learns, or any.',
)
title = click.option('--title', help='Title of the picture or page.')
axis = click.option(
    '--axis',
    type=click.Choice(['env_step', 'train_iter', 'seconds']),
    default='env_step',
    show_default=True,
    help='What returns are plotted against.',
)
show_fig = click.option('--show-fig', is_flag=True, help='Show the picture of the curve at the end.')

# ---- what only sub-commands take ----
run = click.argument('run', type=click.Path())
runs = click.argument('runs', nargs=-1, required=True, type=click.Path())
config = click.argument('config', required=False, shell_complete=completed(configs))
policy = click.option('-p', '--policy', shell_complete=completed(policies), help='Algorithm: nervex list policies.')
env = click.option(
    '-e',
    '--env',
    shell_complete=completed(envs),
    help='Environment: a Gymnasium id, one of nervex list envs, or module:name of your own.',
)
steps = click.option('--steps', type=click.IntRange(min=1), help='Env steps at most (commander.max_env_step).')
jobs = click.option('-j', '--jobs', type=click.IntRange(min=1), help='Runs of a sweep at once (one a core).')
force = click.option('--force', is_flag=True, help='Replace the file if it is there.')
