"""The sub-commands: ``nervex train``, ``eval``, ``resume``, ...; each takes only what it uses, and imports it late."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from nervex.entry.cli import cli, find_modules, run_mode

_ANYWHERE = ('-m', '--mode', '-q', '--query-registry')  # flags by which a line is meant for the command without a name


class FrontDoor(click.Group):
    """The command: with the name of a sub-command first, that one; else the flags that come without one."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Of the sub-commands, or of the command without a name."""
        first = args[0] if args else ''
        named = first in self.commands or (first and not first.startswith('-') and not set(_ANYWHERE) & set(args))
        if named or first in ('-h', '--help'):
            return super().make_context(info_name, args, parent, **extra)
        return cli.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the one that the context is of."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which people need them."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The sub-commands, and the flags without one."""
        self.format_commands(ctx, formatter)
        with formatter.section('Without a command'):
            formatter.write_text('nervex -m serial -c CONFIG -s SEED, with these options:')
        cli.format_options(ctx, formatter)


@click.group(cls=FrontDoor, context_settings={'help_option_names': ['-h', '--help']})
def front_door() -> None:
    """Train, evaluate and inspect deep-RL agents.

    nervex train -p ppo -e CartPole-v1 trains one; nervex COMMAND -h explains a command.
    """


# ---- what several commands take ----
def _completed(list_names: Callable[[], Any]) -> Callable[..., list[str]]:
    """Names for shell completion, found when they are asked for."""
    return lambda ctx, param, incomplete: sorted(name for name in list_names() if name.startswith(incomplete))


def _policies() -> list[str]:
    from nervex.utils.registry_factory import POLICY_REGISTRY

    return list(POLICY_REGISTRY.query())


def _configs() -> list[str]:
    from nervex.config.builtin import builtin_configs

    return [*builtin_configs(), *os.listdir()]


_seed = click.option('-s', '--seed', type=click.IntRange(0, 2**31 - 1), help='Seed; drawn and shown if left out.')
_episodes = click.option('-n', '--episodes', type=click.IntRange(min=1), help='How many episodes.')
_override = click.option('-o', '--override', multiple=True, metavar='PATH=VALUE', help='Change a setting; repeatable.')
_trust = click.option('--trust', is_flag=True, help='Run code that the folder holds or names, though not from you.')
_load = click.option('--load', metavar='RUN', help='Begin with the weights of a checkpoint or run.')
_show_fig = click.option('--show-fig', is_flag=True, help='Show the picture of the curve at the end.')
_run = click.argument('run', type=click.Path())


def _command(name: str, *parts: Callable) -> Callable[[Callable], click.Command]:
    """A sub-command with these arguments and options."""

    def made(function: Callable) -> click.Command:
        for part in reversed(parts):
            function = part(function)
        return front_door.command(name, no_args_is_help=name not in ('doctor', 'list'))(function)

    return made


# ---- the commands ----
@_command(
    'train',
    click.argument('config', required=False, shell_complete=_completed(_configs)),
    click.option('-p', '--policy', shell_complete=_completed(_policies), help='Algorithm: nervex list policies.'),
    click.option('-e', '--env', help='Environment: a Gymnasium id, or one of nervex list envs.'),
    _seed,
    click.option('--steps', type=click.IntRange(min=1), help='Env steps at most (commander.max_env_step).'),
    *(_override, _load, _trust, _show_fig),
)
def train(config: str | None, policy: str | None, env: str | None, steps: int | None, **options: Any) -> None:
    """Train a policy, in a folder of its own below runs/.

    nervex train -p ppo -e CartPole-v1 -s 0

    nervex train cartpole_dqn -o policy.learn.learning_rate=3e-4
    """
    if steps is not None:
        options['override'] += (f'commander.max_env_step={steps}',)
    cfg = _own_folder(_chosen(config, policy, env, options))
    parallel = cfg.get('backend') == 'ray' or cfg.get('mode') == 'parallel'
    run_mode('parallel' if parallel else 'serial', config=cfg, **options)


def _chosen(config: str | None, policy: str | None, env: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The config that was given, or the usual one of a policy on an env, or that of the run to begin from."""
    from nervex.config import read_config
    from nervex.run.folder import config_beside

    if config is not None and (policy or env):
        raise click.UsageError('give a config, or a policy with -p and an environment with -e')
    if config is not None:
        find_modules(config, options['override'])
        return dict(read_config(config))
    if policy and env:
        from nervex.run.defaults import config_for

        find_modules('', (env, policy))
        return dict(config_for(policy, env))
    if policy or env or not options['load']:
        raise click.UsageError('give a config, or a policy and an environment: nervex train -p ppo -e CartPole-v1')
    return config_beside(options['load'], options['trust'])


def _own_folder(cfg: dict[str, Any]) -> dict[str, Any]:
    """The config with a folder below runs/, unless it names one."""
    from nervex.run.folder import AUTO

    return cfg if cfg.get('exp_name') else {**cfg, 'exp_name': AUTO}


@_command(
    'eval',
    *(_run, _episodes, _seed, _override),
    click.option('--video', is_flag=True, help='Save the best and the worst episode as mp4.'),
    click.option('--gif', is_flag=True, help='The same as gif.'),
    click.option('--render', is_flag=True, help='Show the episodes in a window.'),
    click.option('--opponent', metavar='PLAYER', help='In a game of two sides: a run, a checkpoint, random, human.'),
    _trust,
)
def evaluate(run: str, **options: Any) -> None:
    """Play episodes with a checkpoint: RUN, or the best one of RUN.

    nervex eval runs/CartPole-v1_ppo_s0 -n 20 --video
    """
    run_mode('eval', load=run, **options)


@_command('resume', _run, _override, _trust, _show_fig)
def resume(run: str, **options: Any) -> None:
    """Go on with a stopped RUN, exactly where it was.

    nervex resume runs/CartPole-v1_ppo_s0

    nervex resume runs/CartPole-v1_ppo_s0 -o commander.max_env_step=100000
    """
    from nervex.run.folder import run_at

    found = run_at(run)
    run_mode(found.mode, resume=found.folder, **options)


@_command(
    'plot',
    click.argument('runs', nargs=-1, required=True, type=click.Path()),
    click.option('--out', metavar='NAME', help='Write NAME.png and NAME.svg (curves).'),
    click.option('--title', help='Title of the picture.'),
    click.option('--axis', type=click.Choice(['env_step', 'train_iter', 'seconds']), default='env_step'),
    _show_fig,
)
def plot(runs: tuple[str, ...], **options: Any) -> None:
    """Draw the learning curves of RUNS, or of all runs below a folder.

    nervex plot runs --out pictures/compared
    """
    from nervex.run.folder import run_at

    run_mode('plot', folders=tuple(run_at(run).folder if os.path.isfile(run) else run for run in runs), **options)


@_command(
    'collect',
    *(_run, _episodes, _seed),
    click.option('--out', metavar='FOLDER', help='Where the trajectories go (data).'),
    *(_override, _trust),
)
def collect(run: str, **options: Any) -> None:
    """Save episodes of the best checkpoint of RUN as trajectories.

    nervex collect runs/CartPole-v1_ppo_s0 -n 100 --out data
    """
    run_mode('collect', load=run, **options)


@_command(
    'offline',
    click.argument('config', shell_complete=_completed(_configs)),
    click.option('--data', multiple=True, required=True, metavar='PATH', help='Trajectories; repeatable.'),
    *(_seed, _override, _load, _trust, _show_fig),
)
def offline(config: str, **options: Any) -> None:
    """Learn from trajectories; the envs only evaluate.

    nervex offline cartpole_cql --data data
    """
    run_mode('offline', config=_own_folder(_chosen(config, None, None, options)), **options)


@_command(
    'arena',
    click.argument('players', nargs=-1, required=True),
    click.option('-c', '--config', help='Names the game where no player is a run.'),
    click.option('-n', '--episodes', type=click.IntRange(min=1), help='Games of each pair (100).'),
    *(_seed, _override, _trust),
)
def arena(players: tuple[str, ...], **options: Any) -> None:
    """Let PLAYERS (runs, checkpoints, players by rule) meet each other.

    nervex arena runs/a runs/b random -n 200
    """
    run_mode('arena', folders=players, **options)
