"""What the command lines take, each option declared once: ``-m MODE`` takes the flags, a sub-command some of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

SEED = click.IntRange(0, 2**31 - 1)
TRAIN, PLAY = ('serial', 'parallel', 'offline'), ('eval', 'collect')  # modes


def taking(*parts: Callable) -> Callable[[Callable], Callable]:
    """A function with these options and arguments, in this order."""

    def decorated(function: Callable) -> Callable:
        for part in reversed(parts):
            function = part(function)
        return function

    return decorated


def at_least_one(text: str) -> int:
    """A count on the command line of a module, which reads it by argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'got {text!r}, must be an int >= 1')
    return int(text)


# ---- options that some modes have no use for ----
class UsedOption(click.Option):
    """
    Overview:
        An option of the command that has all modes; those that have no use for it refuse it. Sub-commands take only
        what they use.
    Arguments:
        - modes (:obj:`Iterable[str]`): those that use it
        - platforms (:obj:`Iterable[str]`): of ``-m parallel``, where it is of use
    """

    def __init__(self, *args: Any, modes: Iterable[str], platforms: Iterable[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.uses = {'mode': tuple(modes), 'platform': tuple(platforms)}


used_option = partial(click.option, cls=UsedOption)


def refuse_unused(ctx: click.Context, **here: str) -> None:
    """A UsageError if an option was given that this ``mode`` (or this ``platform``) has no use for; '' is none."""
    for option in ctx.command.params:
        if not isinstance(option, UsedOption):
            continue
        if ctx.get_parameter_source(option.name or '') is not ParameterSource.COMMANDLINE:
            continue
        for of, value in here.items():
            if option.uses[of] and value not in option.uses[of]:
                *others, last = option.uses[of]
                takers = f'{", ".join(others)} or {last}' if others else last
                text = f'{_as_given(option, ctx.params[option.name])} is for -{of[0]} {takers}'
                raise click.UsageError(f'{text}; -{of[0]} {value} has no use for it' if value else text)


def _as_given(option: click.Option, value: Any) -> str:
    return f'{option.opts[0]} {value}' if isinstance(option.type, click.Choice) else option.opts[0]


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
seed = used_option(
    '-s',
    '--seed',
    modes=(*TRAIN, *PLAY, 'arena'),
    type=SEED,
    help='Seed; drawn and shown if left out, 0 for what only plays.',
)
episodes = used_option(
    '--episodes',
    '-n',
    modes=(*PLAY, 'arena'),
    type=click.IntRange(min=1),
    help='How many episodes; of an arena, games of each pair (100).',
)
override = used_option(
    '-o',
    '--override',
    modes=(*TRAIN, *PLAY, 'arena'),
    multiple=True,
    metavar='PATH=VALUE',
    help='Change a setting, e.g. -o policy.learn.learning_rate=3e-4; repeatable.',
)
load = used_option(
    '--load',
    modes=(*TRAIN, *PLAY),
    metavar='RUN',
    help='Checkpoint, or run for its best one: to play with, or to begin with its weights. Its run has the config '
    'where none is given.',
)
trust = used_option(
    '--trust',
    modes=(*TRAIN, *PLAY, 'arena'),
    is_flag=True,
    help='Run code that the folder holds or names, though not from you.',
)
data = used_option(
    '--data', modes=['offline'], multiple=True, metavar='PATH', help='Trajectories to learn from offline; repeatable.'
)
opponent = used_option(
    '--opponent',
    modes=['eval'],
    metavar='PLAYER',
    help='In a game of two sides: a run, a checkpoint, random, a player, human.',
)
video = used_option(
    '--video', modes=['eval'], is_flag=True, help='Save the best and the worst episode of an evaluation as mp4.'
)
gif = used_option('--gif', modes=['eval'], is_flag=True, help='The same as gif.')
render = used_option('--render', modes=['eval'], is_flag=True, help='Show the episodes of an evaluation in a window.')
address = used_option('--address', modes=['parallel'], metavar='HOST:PORT', help='Running Ray cluster to join.')
out = used_option(
    '--out',
    modes=['collect', 'plot'],
    metavar='NAME',
    help='plot writes NAME.png and NAME.svg (curves), collect fills the folder NAME (data).',
)
acts = used_option(
    '--acts',
    modes=['collect'],
    type=click.Choice(['greedy', 'sampled', 'random']),
    default='greedy',
    show_default=True,
    help='What collect plays: the best actions, those that the policy draws while it learns, or any.',
)
title = used_option('--title', modes=['plot'], help='Title of the picture or page.')
axis = used_option(
    '--axis',
    modes=['plot'],
    type=click.Choice(['env_step', 'train_iter', 'seconds']),
    default='env_step',
    show_default=True,
    help='What returns are plotted against.',
)
show_fig = used_option(
    '--show-fig', modes=(*TRAIN, 'plot'), is_flag=True, help='Show the picture of the curve at the end.'
)

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
