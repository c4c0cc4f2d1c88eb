"""The ``nervex`` command. Exit codes: 0 solved or finished, 1 failure, 2 wrong usage or config, 128 + n signal n."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import click

from nervex.entry import options as take
from nervex.utils.errors import ExtraMissingError
from nervex.version import __TITLE__, __VERSION__

#: the modes, and the function of each, which gets all options
MODES = {
    'serial': 'nervex.entry.cli:_serial',
    'parallel': 'nervex.entry.cli:_parallel',
    'offline': 'nervex.entry.cli:_offline',
    'eval': 'nervex.entry.cli:_eval',
    'collect': 'nervex.entry.cli:_collect',
    'plot': 'nervex.entry.cli:_plot',
    'arena': 'nervex.entry.cli:_arena',
}
DEFAULT_CONFIG = 'cartpole_dqn'  # of a command without any argument
EXIT_FAILURE, EXIT_USAGE = 1, 2
_SUBMIT = ('slurm', 'k8s')  # platforms to which a run is handed
_elsewhere = partial(take.used_option, modes=['parallel'])


class _Mode(click.Choice):
    """A name in ``MODES``, or a user's own function as ``module:function``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if ':' in value else super().convert(value, param, ctx)


@click.command(context_settings={'help_option_names': ['-h', '--help']})
@take.taking(
    click.option('-v', '--version', is_flag=True, help='Show the version and leave.'),
    click.option(
        '-m',
        '--mode',
        type=_Mode(list(MODES)),
        help='What to run; left out: what the config says, or serial. module:function runs that, with all options.',
    ),
    take.used_option(
        '-c',
        '--config',
        modes=(*take.TRAIN, *take.PLAY, 'arena'),
        help='Config file (.py or .yaml), or the name of a built-in one: nervex -q config.',
    ),
    *(take.seed, take.override, take.load),
    take.used_option(
        '--resume',
        modes=take.TRAIN,
        is_flag=False,
        flag_value='.',
        metavar='[FOLDER]',
        help='Continue the stopped run in FOLDER (the current one if none is given), exactly where it was.',
    ),
    *(take.trust, take.data, take.episodes, take.acts, take.opponent, take.video, take.gif, take.render),
    take.used_option(
        '-p',
        '--platform',
        modes=['parallel'],
        type=click.Choice(['local', 'slurm', 'k8s']),
        default='local',
        show_default=True,
        help='Where -m parallel runs.',
    ),
    _elsewhere('-ch', '--coordinator_host', platforms=_SUBMIT, help='Node that the coordinator runs on (slurm, k8s).'),
    _elsewhere('-lh', '--learner_host', default='0.0.0.0', help='Nodes of the learners: gpu1,cpu[2-5]; 0.0.0.0: any.'),
    _elsewhere('-ah', '--actor_host', default='0.0.0.0', help='Nodes of the actors, likewise.'),
    take.address,
    _elsewhere('--dry-run', platforms=_SUBMIT, is_flag=True, help='-p slurm and -p k8s print what they would submit.'),
    click.option(
        '-q',
        '--query-registry',
        metavar='NAME',
        help='List what a config may name (policy, env, ...; config: the built-in ones), or show one: -q policy dqn.',
    ),
    *(take.out, take.show_fig, take.title, take.axis),
    click.argument('folders', nargs=-1),
)
def cli(**options: Any) -> None:
    """Train, evaluate and inspect deep-RL agents from one config."""
    mode, ctx = options['mode'], click.get_current_context()
    if options['version']:
        click.echo(f'{__TITLE__} {__VERSION__}')
    elif options['query_registry']:
        from nervex.config.query import query

        take.refuse_unused(ctx, mode='')
        for line in query(options['query_registry'], options['folders']):
            click.echo(line)
    elif ':' in (mode or ''):
        run_mode(**options)
    elif options['folders'] and mode not in ('plot', 'arena'):
        raise click.UsageError(f'unexpected {options["folders"][0]!r}: only -m plot and -m arena take folders')
    elif mode is None:
        cli.callback(**_by_default(options))  # type: ignore[misc]
    else:
        take.refuse_unused(ctx, mode=mode, platform=options['platform'])
        if mode not in ('plot', 'arena') and not (options['config'] or options['load'] or options['resume']):
            raise click.UsageError(f'-m {mode} needs a config: -c FILE, or the run that has one')
        run_mode(**options)


def _by_default(options: dict[str, Any]) -> dict[str, Any]:
    """The options with the mode that the config names, and with a config where there is none."""
    from nervex.config.overrides import overridden

    if (options['load'] or options['resume']) and not options['config']:
        *others, last = MODES
        raise click.UsageError(f'give a mode: -m {", -m ".join(others)} or -m {last} (or -q NAME, -v, -h)')
    config = options['config']
    if not config:
        config = DEFAULT_CONFIG
        click.echo(f'no config is given: -m serial -c {config} (nervex -h shows all options)')
    given = overridden(config, options['override'])
    train = 'parallel' if given.get('backend') == 'ray' else 'serial'
    named = {'train': train, 'test': 'eval'}.get(str(given.get('mode')), given.get('mode'))
    known = isinstance(named, str) and named in MODES  # what is wrong is told with the config
    return {**options, 'config': config, 'mode': named if known else train}


def find_modules(config: str, named: Sequence[str]) -> None:
    """Modules that are named may lie beside what names them: the config, or the command line in this folder."""
    if os.path.isfile(config):
        sys.path.append(os.path.dirname(os.path.abspath(config)))
    if any('import_names' in text or ':' in text for text in named):
        sys.path.append(os.getcwd())


def run_mode(mode: str, **given: Any) -> None:
    """Find the function of the mode, and call it with these options; the others are as if they were not given."""
    from nervex.utils.import_helper import load_attribute

    options = {**cli.make_context('nervex', []).params, 'mode': mode, **given}
    config = options['config']
    find_modules(config if isinstance(config, str) else '', (mode, *options['override']))
    try:
        run = load_attribute(MODES.get(mode, mode))
    except ValueError as e:
        raise click.UsageError(f'-m: {e}') from e
    run(options)


def _train(pipeline: Callable[..., Any], options: dict[str, Any], *data: Any) -> None:
    """Carry out a run, and tell how it ended."""
    from nervex.run.folder import saved_run

    if options['resume'] and options['seed'] not in (None, own := saved_run(options['resume']).seed):
        raise click.UsageError(f'-s {options["seed"]}: {options["resume"]} goes on with its own seed, {own}')
    if options['resume'] and options['load']:
        raise click.UsageError(f'--load {options["load"]}: {options["resume"]} goes on with its own weights')
    how = dict(overrides=_overrides(options), progress=True, resume=options['resume'], trust=options['trust'])
    _tell(pipeline(_config(options), *data, options['seed'], **how), options)


def _overrides(options: dict[str, Any]) -> tuple[str, ...]:
    load = options['load']
    return options['override'] + ((f'learner.load_path={json.dumps(load)}',) if load else ())


def _serial(options: dict[str, Any]) -> None:
    from nervex.entry.serial_entry import serial_pipeline

    _train(serial_pipeline, options)


def _offline(options: dict[str, Any]) -> None:
    from nervex.entry.offline_entry import offline_pipeline

    if not options['data'] and not options['resume']:
        raise click.UsageError('-m offline needs recorded episodes: --data FOLDER (nervex -m collect writes them)')
    _train(offline_pipeline, options, list(options['data']) or None)


def _parallel(options: dict[str, Any]) -> None:
    from nervex.entry.parallel_entry import parallel_pipeline
    from nervex.parallel.ray_cluster import require_ray

    options['override'] += _where(options)
    if options['platform'] != 'local':
        _submit(options, _overrides(options))
        return
    try:
        require_ray()
    except ExtraMissingError as e:
        raise click.ClickException(str(e)) from e
    _train(parallel_pipeline, options)


def _where(options: dict[str, Any]) -> tuple[str, ...]:
    """Overrides that say where roles run."""
    from nervex.utils.slurm_helper import node_list

    found = [f'parallel.address={json.dumps(options["address"])}'] if options['address'] else []
    for kind in ('learner', 'actor'):
        try:
            hosts = node_list(options[f'{kind}_host'])
        except ValueError as e:
            raise click.UsageError(f'-{kind[0]}h: {e}') from e
        if hosts != ['0.0.0.0']:
            found.append(f'parallel.resources.{kind}.hosts={json.dumps(hosts)}')
    return tuple(found)


def _submit(options: dict[str, Any], overrides: tuple[str, ...]) -> None:
    """Hand the run to SLURM or Kubernetes, or print what would be handed."""
    from nervex.parallel import submission
    from nervex.run.folder import saved_run

    config = _config(options) or saved_run(options['resume']).config_to_use(options['trust'])
    cfg = submission.compile_for_cluster(config, overrides)
    on_slurm = options['platform'] == 'slurm'
    text = (submission.slurm_script if on_slurm else submission.manifest)(cfg, options)
    if options['dry_run']:
        click.echo(text, nl=False)
    else:
        click.echo((submission.submit_script if on_slurm else submission.apply_manifest)(text))


def _config(options: dict[str, Any]) -> Any:
    """The config that is given, or else that of the run of ``--load``; None where ``--resume`` tells."""
    from nervex.run.folder import config_beside

    return options['config'] or (None if options['resume'] else config_beside(options['load'], options['trust']))


def _tell(result: Any, options: dict[str, Any]) -> None:
    from nervex.run.progress import harmless

    log = result.log_path
    lines = [
        f'{result.verdict} after {result.env_steps:,} env steps, {result.train_iters:,} updates, '
        f'{result.seconds:.1f} s, seed {result.seed}',
        f'checkpoint: {result.best_checkpoint or result.checkpoint}',
        f'logs:       {log}  (tensorboard --logdir reads them)',
        *([f'curve:      {result.curve_path}  (drawn: curve.png)'] if result.history else []),
        *result.notes,
    ]
    with harmless():  # the run is over, and its folder has all of it
        click.echo('\n'.join(lines))
    if options['show_fig'] and result.history:
        _show(os.path.splitext(result.curve_path)[0] + '.png')


def _show(picture: str) -> None:
    """Open a picture with what this machine shows pages by; where that is nothing, say so."""
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(picture).absolute().as_uri()):
        click.echo(f'--show-fig: nothing here can show {picture}', err=True)


def _how_to_play(options: dict[str, Any]) -> dict[str, Any]:
    how = dict(load_path=options['load'], n_episode=options['episodes'], overrides=options['override'])
    return dict(cfg=_config(options), seed=options['seed'] or 0, **how)


def _eval(options: dict[str, Any]) -> None:
    from nervex.entry.video import eval_and_show

    if options['opponent'] == 'human':
        _play(options)
        return
    if options['video'] and options['gif']:
        raise click.UsageError('give --video or --gif')
    if options['opponent']:
        options['override'] += (f'env.evaluator_opponent={json.dumps(options["opponent"])}',)
    video = 'gif' if options['gif'] else 'mp4' if options['video'] else None
    shown = eval_and_show(**_how_to_play(options), video=video, render=options['render'])
    r, k = shown.evaluation.returns, shown.evaluation.lengths
    more = f', and {len(r) - 20} more' if len(r) > 20 else ''
    click.echo('returns: ' + ', '.join(f'{x:.1f}' for x in r[:20]) + more)
    click.echo(
        f'{len(r)} episodes: mean {r.mean():.2f}, std {r.std():.2f}, min {r.min():.2f}, max {r.max():.2f}, '
        f'length mean {k.mean():.1f} (min {k.min()}, max {k.max()})'
    )
    if (won := shown.evaluation.win_rate) is not None:
        click.echo(f'win rate: {won:.2f}')
    if (agents := shown.evaluation.agent_means) is not None:
        click.echo('mean return of each agent: ' + ', '.join(f'{mean:.2f}' for mean in agents))
    for which, path in shown.videos.items():
        click.echo(f'{which} episode: {path}')


def _play(options: dict[str, Any]) -> None:
    from nervex.entry.arena_entry import play_human

    how = _how_to_play(options)
    if filmed := next((name for name in ('video', 'gif', 'render') if options[name]), None):
        raise click.UsageError(f'--{filmed}: games with --opponent human show themselves, and are not filmed')
    if not how['load_path']:
        raise click.UsageError('-m eval --opponent human needs a trained policy: --load FILE')
    results = play_human(how['cfg'], how['load_path'], how['n_episode'] or 1, how['seed'], how['overrides'])
    won, drawn = (results < 0).sum(), (results == 0).sum()
    click.echo(f'{len(results)} games: you won {won}, drew {drawn}, lost {len(results) - won - drawn}')


def _arena(options: dict[str, Any]) -> None:
    from nervex.entry.arena_entry import arena

    n_episode = options['episodes'] or 100
    how = dict(cfg=options['config'], overrides=options['override'], trust=options['trust'])
    result = arena(options['folders'], n_episode, options['seed'] or 0, **how, told=partial(click.echo, err=True))
    click.echo(f'{n_episode} games of each pair, wins-draws-losses of the row:')
    click.echo(result.table())
    if result.different < n_episode:
        text = f'some pair played no more than {result.different} different games, which the intervals do not know'
        click.echo(f'{text}; -o env.opponent_acts=sampled makes them differ')


def _collect(options: dict[str, Any]) -> None:
    from nervex.entry.eval_entry import collect

    folder = options['out'] or 'data'
    result, written = collect(**_how_to_play(options), folder=folder, acts=options['acts'])
    click.echo(f'{written} episodes, {result.lengths.sum():,} steps, mean return {result.mean:.2f}')
    click.echo(f'trajectories: {folder}')


def _plot(options: dict[str, Any]) -> None:
    from nervex.entry.plot_entry import plot

    if not options['folders']:
        raise click.UsageError('-m plot needs folders of runs: nervex -m plot FOLDER...')
    files = plot(options['folders'], options['out'] or 'curves', options['title'], options['axis'])
    click.echo('\n'.join(files))
    if options['show_fig']:
        _show(files[-1])


def main(argv: list[str] | None = None) -> None:
    """Entry point: run the command, and turn what went wrong into one message and an exit code."""
    from nervex.entry.commands import front_door
    from nervex.run.signals import interrupt, take_over

    if threading.current_thread() is threading.main_thread():
        take_over(interrupt)  # in every mode and at every moment; a script's background jobs begin with SIGINT ignored
    for number in range(3):  # a closed standard stream would lend its number to a file, which gets what others print
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.path[0] in ('', os.getcwd()):  # python -m: what lies in the current folder shadows no package
        sys.path.append(sys.path.pop(0))

    with told_in_one_message():
        front_door.main(args=argv, prog_name='nervex', standalone_mode=False)


@contextlib.contextmanager
def told_in_one_message() -> Iterator[None]:
    """What goes wrong inside is one message and an exit code; a decorator of commands that are modules, too."""
    from nervex.run.signals import exit_code
    from nervex.utils.errors import ConfigError, NervexError, NothingThereError, UnknownNameError

    try:
        yield
    except click.ClickException as e:
        text = e.format_message()
        if isinstance(e, click.UsageError) and e.ctx is not None and '\n' not in text:  # else it is the help
            click.echo(f'error: {text} ({e.ctx.command_path} -h explains)', err=True)
        else:
            e.show()
        sys.exit(EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt) as e:
        path = next(iter((e.__cause__ or e).args), None)  # click wraps KeyboardInterrupt
        if path:
            folder = os.path.relpath(os.path.dirname(os.path.dirname(path)))
            click.echo(f'to go on: nervex resume {shlex.quote(folder)}', err=True)
        click.echo(f'interrupted; checkpoint saved: {path}' if path else 'interrupted', err=True)
        sys.exit(exit_code())
    except (ConfigError, UnknownNameError) as e:
        click.echo('\n  '.join(['config error:', *getattr(e, 'problems', [str(e)])]), err=True)
        sys.exit(EXIT_USAGE)
    except (NervexError, OSError) as e:
        click.echo(f'error: {e}', err=True)
        sys.exit(EXIT_USAGE if isinstance(e, NothingThereError) else EXIT_FAILURE)
    except (MemoryError, RuntimeError) as e:
        if not isinstance(e, MemoryError) and "can't allocate memory" not in str(e):
            raise
        click.echo(f'config error:\n  its sizes need more memory than there is: {" ".join(str(e).split())}', err=True)
        sys.exit(EXIT_USAGE)
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except (OSError, ValueError):  # Python, which flushes again, would end with exit code 120
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == '__main__':
    main()
