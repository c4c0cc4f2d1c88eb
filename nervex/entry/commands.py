"""The sub-commands: ``nervex train``, ``eval``, ``resume``, ...; each takes only what it uses, and imports it late."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from nervex.entry import options as take
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
        if named or first in ('-h', '--help') or (not args and extra.get('resilient_parsing')):  # which completes
            return super().make_context(info_name, args, parent, **extra)
        return cli.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the one that the context is of."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The sub-commands, or the flags that come without one."""
        return cli.shell_complete(ctx, incomplete) if incomplete[:1] == '-' else super().shell_complete(ctx, incomplete)

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


# ---- the commands ----
def _command(name: str, *parts: Callable) -> Callable[[Callable], click.Command]:
    """A sub-command with these arguments and options."""

    command = front_door.command(name, no_args_is_help=name not in ('doctor', 'list'))
    return lambda function: command(take.taking(*parts)(function))


@_command(
    'train',
    *(take.config, take.policy, take.env, take.seed, take.steps, take.override, take.load, take.trust, take.show_fig),
)
def train(config: str | None, policy: str | None, env: str | None, steps: int | None, **options: Any) -> None:
    """Train a policy, in a folder of its own below runs/.

    nervex train -p ppo -e CartPole-v1 -s 0

    nervex train cartpole_dqn -o policy.learn.learning_rate=3e-4
    """
    from nervex.config.overrides import overridden

    options['override'] = _with_steps(options['override'], steps)
    cfg = _own_folder(_chosen(config, policy, env, options))
    given = overridden(cfg, options['override'])
    parallel = given.get('backend') == 'ray' or given.get('mode') == 'parallel'
    run_mode('parallel' if parallel else 'serial', config=cfg, **options)


def _with_steps(override: tuple[str, ...], steps: int | None) -> tuple[str, ...]:
    """The overrides with that of ``--steps``."""
    return override if steps is None else (*override, f'commander.max_env_step={steps}')


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
        import rich

        from nervex.config.overrides import overridden
        from nervex.config.sections import SECTIONS
        from nervex.run.defaults import config_for
        from nervex.run.probe import probe

        find_modules('', (env, policy))
        given = overridden({}, options['override'])
        cfg = config_for(policy, env, **{key: given[key] for key in given if key in SECTIONS})
        rich.print(probe(cfg, overrides=options['override']))
        return dict(cfg)
    if policy or env or not options['load']:
        raise click.UsageError('give a config, or a policy and an environment: nervex train -p ppo -e CartPole-v1')
    return config_beside(options['load'], options['trust'])


def _own_folder(cfg: dict[str, Any]) -> dict[str, Any]:
    """The config with a folder below runs/ and one entry in TensorBoard, unless it says otherwise."""
    from nervex.run.folder import AUTO

    return {'events': {'tensorboard': {}}, **cfg, 'exp_name': cfg.get('exp_name') or AUTO}


@_command(
    'eval',
    *(take.run, take.episodes, take.seed, take.override, take.video, take.gif, take.render, take.opponent, take.trust),
)
def evaluate(run: str, **options: Any) -> None:
    """Play episodes with a checkpoint: RUN, or the best one of RUN.

    nervex eval runs/CartPole-v1_ppo_s0 -n 20 --video
    """
    run_mode('eval', load=run, **options)


@_command('resume', take.run, take.override, take.jobs, take.trust, take.show_fig)
def resume(run: str, jobs: int | None, **options: Any) -> None:
    """Go on with a stopped RUN, or a sweep, exactly where it was.

    nervex resume runs/CartPole-v1_ppo_s0

    nervex resume runs/CartPole-v1_ppo_s0 -o commander.max_env_step=100000
    """
    from nervex.run.folder import run_at

    if os.path.isfile(os.path.join(run, 'sweep.yaml')):
        if options['override']:
            raise click.UsageError(f'{run}: a sweep goes on with the settings that it has, without -o')
        _sweep(run, jobs, options['trust'])
        return
    if jobs is not None:
        raise click.UsageError(f'{run}: is no sweep, and -j is for sweeps')
    found = run_at(run)
    run_mode(found.mode, resume=found.folder, **options)


@_command(
    'sweep',
    *(take.config, take.policy, take.env),
    click.option('--seeds', default='0-4', show_default=True, metavar='RANGE', help='As 0-9, or 0,3,7.'),
    click.option('-g', '--grid', multiple=True, metavar='PATH=V1,V2', help='Try these values; repeatable: all pairs.'),
    click.option(
        '--optuna', type=click.IntRange(min=1), metavar='N', help='Search N settings; -g takes 1e-5..1e-2:log.'
    ),
    *(take.jobs, take.steps, take.override),
    click.option('--out', metavar='FOLDER', help='Where the runs go (sweeps/<env>_<policy>).'),
    click.option('--ray', is_flag=True, help='Run them as tasks of Ray.'),
    take.address,
)
def sweep(config: str | None, policy: str | None, env: str | None, steps: int | None, **options: Any) -> None:
    """Train with several settings and seeds, -j runs at once, and compare them.

    nervex sweep cartpole_dqn --seeds 0-9 -g policy.learn.learning_rate=1e-4,3e-4 -j 2
    """
    import sys

    from nervex.entry.sweep_entry import Plan, begin_sweep, grid_of, seed_list

    if options['address'] and not options['ray']:
        raise click.UsageError('--address is for --ray')
    override, known = _with_steps(options['override'], steps), len(sys.path)
    seeds, grid = seed_list(options['seeds']), grid_of(options['grid'])
    cfg = _chosen(config, policy, env, {'override': override, 'load': None})
    plan = Plan(
        grid=grid,
        seeds=seeds,
        override=list(override),
        jobs=options['jobs'] or len(os.sched_getaffinity(0)),
        config=cfg,
        modules=sys.path[known:],
        **{name: options[name] for name in ('ray', 'address', 'optuna')},
    )
    _sweep(begin_sweep(plan, options['out']), None, False)


def _sweep(folder: str, jobs: int | None, trust: bool) -> None:
    from nervex.entry.sweep_entry import Sweep, sweep_lines

    for line in filter(None, sweep_lines(Sweep(folder, jobs, trust))):
        click.echo(line)


@_command('plot', take.runs, take.out, take.title, take.axis, take.show_fig)
def plot(runs: tuple[str, ...], **options: Any) -> None:
    """Draw the learning curves of RUNS, or of all runs below a folder.

    nervex plot runs --out pictures/compared
    """
    run_mode('plot', folders=_folders(runs), **options)


def _folders(runs: tuple[str, ...]) -> tuple[str, ...]:
    """Folders, in the place of checkpoints those of their runs."""
    from nervex.run.folder import run_at

    return tuple(run_at(run).folder if os.path.isfile(run) else run for run in runs)


@_command(
    'report',
    take.runs,
    click.option('-o', '--out', default='report.html', show_default=True, metavar='FILE', help='The page.'),
    *(take.title, take.force),
)
def report(runs: tuple[str, ...], out: str, title: str | None, force: bool) -> None:
    """Tell what RUNS, or all runs below a folder, did, in one HTML page that needs no network.

    nervex report runs/CartPole-v1_ppo_s0 -o report.html
    """
    from nervex.entry.report_entry import report as write_report

    if os.path.exists(out) and not force:
        raise click.UsageError(f'{out}: is there already; --force replaces it')
    click.echo(write_report(_folders(runs), out, title))


@_command('collect', take.run, take.episodes, take.acts, take.seed, take.out, take.override, take.trust)
def collect(run: str, **options: Any) -> None:
    """Save episodes of the best checkpoint of RUN as trajectories.

    nervex collect runs/CartPole-v1_ppo_s0 -n 100 --out data
    """
    run_mode('collect', load=run, **options)


@_command(
    'offline',
    click.argument('config', shell_complete=take.completed(take.configs)),
    *(take.data, take.seed, take.override, take.load, take.trust, take.show_fig),
)
def offline(config: str, **options: Any) -> None:
    """Learn from trajectories; the envs only evaluate.

    nervex offline cartpole_cql --data data
    """
    run_mode('offline', config=_own_folder(_chosen(config, None, None, options)), **options)


@_command(
    'export',
    take.run,
    click.option('-o', '--out', required=True, metavar='FILE', help='policy.onnx, policy.pt2 or policy.npz.'),
    *(take.force, take.trust),
)
def export(run: str, out: str, force: bool, trust: bool) -> None:
    """Write what a checkpoint does, RUN, or the best one of RUN, as a file that acts without nerveX.

    nervex export runs/CartPole-v1_ppo_s0 -o policy.onnx
    """
    from nervex.entry.agent import Agent
    from nervex.run.export import ExportError
    from nervex.run.folder import run_at
    from nervex.runtime import ENDINGS
    from nervex.utils import ExtraMissingError

    if not out.endswith(ENDINGS):
        raise click.UsageError(f'-o: got {out!r}, must end in one of {", ".join(ENDINGS)}')
    if os.path.exists(out) and not force:
        raise click.UsageError(f'-o: {out} is there already; give another name, or --force to replace it')
    try:
        agent = Agent.load(run if os.path.isfile(run) else run_at(run).folder, trust=trust)
        about = agent.export(out)
    except (ExportError, ExtraMissingError) as e:
        raise click.UsageError(str(e)) from e
    click.echo(f'{out}: {about["policy"]} for {about["env"]}; acts {about["acts"]}')
    for kind in ('inputs', 'outputs'):
        parts = (f'{part["name"]} {part["dtype"]} {["batch", *part["shape"]]}' for part in about[kind])
        click.echo(f'{kind + ":":9}{", ".join(parts)}'.replace("'", ''))


@_command(
    'arena',
    click.argument('players', nargs=-1, required=True),
    click.option('-c', '--config', help='Names the game where no player is a run.'),
    *(take.episodes, take.seed, take.override, take.trust),
)
def arena(players: tuple[str, ...], **options: Any) -> None:
    """Let PLAYERS (runs, checkpoints, players by rule) meet each other.

    nervex arena runs/a runs/b random -n 200
    """
    run_mode('arena', folders=players, **options)


# ---- what there is ----
def _things() -> dict[str, str]:
    """What can be listed, in the plural -> what it is in a config."""
    from nervex.utils.registry_factory import registries

    plural = {f'{name[:-1]}ies' if name.endswith('y') else f'{name}s': name for name in ('config', *registries)}
    return {**plural, 'runs': 'run'}


def _named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What there is of the kind that the line has named."""
    from nervex.utils.registry_factory import registries

    kind = _things().get(ctx.params['what'], ctx.params['what'])
    names = take.configs if kind == 'config' else lambda: registries.get(kind, ())
    return take.completed(names)(ctx, param, incomplete)


def _one_of(value: str, known: dict[str, str]) -> str:
    """In the singular; a UsageError that names the nearest one."""
    from nervex.utils.errors import unknown_name

    if value not in known.values() and value not in known:
        raise click.UsageError(unknown_name('kind of thing', value, known))
    return known.get(value, value)


@_command(
    'list',
    click.argument('what', required=False, shell_complete=take.completed(_things)),
    click.argument('folder', default='.', type=click.Path()),
)
def list_(what: str | None, folder: str) -> None:
    """List policies, envs, configs, models, ..., or the runs below FOLDER.

    nervex list policies

    nervex list runs
    """
    import shutil

    from nervex.config.query import listing

    known = _things()
    if what is None:
        click.echo(f'nervex list WHAT, with one of: {", ".join(known)}')
        return
    kind, width = _one_of(what, known), shutil.get_terminal_size((120, 24)).columns
    for line in _runs_below(folder) if kind == 'run' else listing(kind, width):
        click.echo(line)
    if kind == 'env':
        click.echo(f'\nand by its id every env of Gymnasium: {", ".join(take.gymnasium_ids())}, ...')


def _runs_below(folder: str) -> list[str]:
    """A line a run: how it is, and what it has reached."""
    from nervex.run.curve import best_return, run_curve
    from nervex.run.folder import find_runs, state_of_run
    from nervex.utils import NothingThereError

    runs = find_runs(folder)
    if not runs:
        raise NothingThereError(f'{folder}: holds no run, and none is below it')
    longest = max(map(len, runs))
    lines = [f'{"run":{longest}}  {"state":11}  {"env steps":>10}  {"last":>8}  {"best":>8}']
    for path in runs:
        reached, rows = '', run_curve(path)
        if rows:
            last, best = float(rows[-1]['return_mean']), best_return(rows)
            reached = f'{int(rows[-1]["env_step"]):10,}  {last:8.1f}  {best:8.1f}'
        lines.append(f'{path:{longest}}  {state_of_run(path):11}  {reached}'.rstrip())
    return lines


@_command(
    'show',
    click.argument('what', shell_complete=take.completed(_things)),
    click.argument('names', nargs=-1, required=True, metavar='NAME...', shell_complete=_named),
)
def show(what: str, names: tuple[str, ...]) -> None:
    """Show what a policy, an env, a config, a run, ... is, with its settings.

    nervex show policy dqn

    nervex show config cartpole_dqn
    """
    from nervex.config import builtin_configs
    from nervex.config.query import query
    from nervex.run.folder import run_at
    from nervex.utils.errors import UnknownNameError, unknown_name

    kind = _one_of(what, _things())
    for name in names:
        if kind == 'run':
            path: str | None = os.path.join(run_at(name).folder, 'log', 'run.yaml')
        elif kind == 'config':
            path = builtin_configs().get(name)
            if path is None:
                raise UnknownNameError(unknown_name('config', name, builtin_configs()))
        else:
            click.echo('\n'.join(query(kind, [name])))
            continue
        with open(path or '', encoding='utf-8') as file:
            click.echo(file.read().rstrip())


@_command('doctor')
def doctor() -> None:
    """Tell what is installed, what is missing and how to get it, and what this machine has.

    nervex doctor
    """
    from nervex.entry.doctor import examine

    for line in examine():
        click.echo(line)
