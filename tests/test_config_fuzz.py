"""Whatever stands in a config or on a command line: one report and exit code 2, or a run; soon, and no traceback."""

import math
import os
import random
import signal
import sys
import time
import traceback
from functools import partial

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from nervex.config import ALIASES, ConfigError, compile_config, read_config
from nervex.config.aliases import STRUCTURE
from nervex.config.save import config_text
from nervex.config.tree import get_path, plain_copy, set_path

CONFIGS = (
    'cartpole_dqn',
    'cartpole_ppo',
    'pendulum_sac',
    'cartpole_r2d2',
    'pendulum_td3',
    'cartpole_ppg',
    'bitflip_her_dqn',
    'cartpole_impala',
    'cartpole_rainbow_iqn',
)
SLOWEST_ANSWER = 5.0  # seconds of processor time
NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    7,
    1000,
    10**6,
    2**31,
    2**63 - 1,
    -(2**63),
    10**30,
    0.0,
    -0.5,
    0.5,
    1.5,
    1e-9,
    1e30,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
    True,
    False,
]
WORDS = [
    '',
    'inf',
    'x',
    '1',
    'true',
    'auto',
    'off',
    'a.b',
    'dqn',
    'base',
    '../x',
    '/',
    'a:b',
    'os:system',
    'None',
    'é\n',
]
OTHERS = [
    None,
    [],
    {},
    (),
    [1, 'a'],
    [-1],
    [0],
    [64, 64],
    [[]],
    {'type': 'x'},
    {'type': None},
    {'a': {'b': 1}},
    {3: 4},
    {'__class__': 3},
    {'keys': 1, 'items': 2},
    object,
    len,
    b'bytes',
    {1, 2},
    [{'a': 1}],
    {'atari': {}},
    ['atari'],
    [{'type': 'time_limit', 'max_episode_steps': 0}],
    {'her': {'k': -1}},
    {'buffer_name': 3},
    {None: 1},
    10**5000,
]
RAW = [
    '2024-02-30',
    '!!int x',
    '9' * 4300,
    '"\\U00110000"',
    '"\\ud800"',
    '&a [*a]',
    '[' * 5000,
    '{a: ' * 200,
    '{3: 4}',
    '{[1]: 2}',
    '{__class__: 3}',
    '!!python/name:os.system',
    '!!binary x',
    '1' * 100_000 + 'x',
    '{a: 1, a: 2}',
    '*nobody',
    '"',
    "'",
    '\t',
    '1:2:3',
    '0x' + 'f' * 200,
    '!!float x',
    '!!bool x',
    '!!timestamp x',
    '!!set {a}',
    '%',
    '@',
    '`',
    '- -',
    '? x',
    '<<: 3',
    '1e5',
    '1_0',
    '.nan',
    '-.inf',
    '~',
    'null',
    'a #b',
    '|',
    '>-',
    '&x y',
    '"\\0"',
]
VALUES = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.sampled_from(OTHERS),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.recursive(st.integers() | st.text(max_size=3), lambda x: st.lists(x, max_size=3), max_leaves=5),
)


def all_paths(tree, prefix=''):
    for key, value in tree.items():
        yield f'{prefix}{key}'
        if isinstance(value, dict):
            yield from all_paths(value, f'{prefix}{key}.')


WHOLE = {name: plain_copy(compile_config(name)) for name in CONFIGS}
GIVEN = {name: plain_copy(read_config(name)) for name in CONFIGS}
OLDER = [old.replace('*', 'agent') for old in (*ALIASES, *STRUCTURE)]
PATHS = {
    name: [*all_paths(whole), *OLDER, 'coordinator', 'learner0', 'polcy', 'env.x.y'] for name, whole in WHOLE.items()
}


@st.composite
def places(draw, name):
    path = draw(st.sampled_from(PATHS[name]))
    spoil = draw(st.integers(0, 19))
    return path[:-1] if spoil == 0 else f'{path}.x' if spoil == 1 else path


@st.composite
def spoiled(draw):
    """What ``compile_config`` takes: a config with some wrong values, as a dict or as YAML, and overrides."""
    name = draw(st.sampled_from(CONFIGS))
    config = plain_copy(draw(st.sampled_from([GIVEN, WHOLE]))[name])
    for path in draw(st.lists(places(name), max_size=3)):
        set_path(config, path, plain_copy(draw(VALUES)))
    overrides = []
    for path in draw(st.lists(places(name), max_size=2)):
        raw = draw(st.one_of(st.sampled_from(RAW), st.sampled_from(NUMBERS + WORDS).map(str), st.text(max_size=6)))
        overrides.append(f'{path}={raw}')
    text = None
    if draw(st.booleans()):
        text = config_text(GIVEN[name])
        lines = text.splitlines()
        for _ in range(draw(st.integers(1, 2))):
            at = draw(st.integers(0, len(lines) - 1))
            lines[at] = lines[at].partition(':')[0] + ': ' + draw(st.sampled_from(RAW) | st.text(max_size=10))
        text = '\n'.join(lines)
    return config, text, overrides


def check_answer(config, text, overrides):
    if text is not None:
        with open('c.yaml', 'w', encoding='utf-8', errors='replace') as file:
            file.write(text)
        config = 'c.yaml'
    began = time.process_time()
    try:
        compile_config(config, overrides=overrides, needs_env=True)
    except ConfigError as error:
        assert error.problems and all(line and '\n' not in line and len(line) < 3000 for line in error.problems), error
    assert time.process_time() - began < SLOWEST_ANSWER


def examine(strategy, function, seed, examples):
    """``function`` on so many drawn examples; a seed gives the same ones each time."""
    run = hypothesis.given(strategy)(lambda drawn: function(*drawn))
    run = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )(run)
    hypothesis.seed(seed)(run)()


SEEDS = [pytest.param(0, 60, id='short'), *(pytest.param(s, 1000, marks=pytest.mark.slow) for s in range(1, 11))]


@pytest.mark.parametrize('seed, examples', SEEDS)
@pytest.mark.timeout(1800)
def test_any_config_is_accepted_or_refused_in_one_report(seed, examples):
    examine(spoiled(), check_answer, seed, examples)


# ---- in a process of its own
def in_child(function, limit):
    """Exit code, what was printed, and whether it ended in time, of a call in a child process."""
    with open('out.txt', 'w+', encoding='utf-8', errors='replace') as out:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            for number in (1, 2):
                os.dup2(out.fileno(), number)
            os.close(0)
            sys.stdout = sys.stderr = out  # pytest has others there
            code = 70
            try:
                function()
                code = 0
            except SystemExit as leaving:
                code = leaving.code or 0
            except BaseException:
                traceback.print_exc()
            finally:
                out.flush()
                os._exit(code)
        until = time.monotonic() + limit
        while not (done := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < until:
            time.sleep(0.005)
        if not done[0]:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(done[1]) if done[0] else None, out.read()


def test_command_lines_are_answered_short():
    command_lines(0, 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_command_lines_are_answered():
    command_lines(1, 300)


FEW = ['commander.max_env_step=16', 'evaluator.n_episode=1', 'env.evaluator_env_num=1', 'policy.torch_threads=1']


def command_lines(seed, count):
    from nervex.entry.cli import main

    rng = random.Random(seed)
    options = [
        '-m',
        '-s',
        '-o',
        '--load',
        '--resume',
        '-lh',
        '-ah',
        '-p',
        '-q',
        '--data',
        '--episodes',
        '--axis',
        '--out',
    ]
    values = [
        'serial',
        'parallel',
        'eval',
        'offline',
        'collect',
        'plot',
        '-1',
        '0',
        'x',
        '9' * 30,
        'a #1/x.pth.tar',
        '.',
        '..',
        '',
        'a[1-999999999]',
        'a[1-2',
        'policy',
        'settings',
        'schema',
        'dqn',
        'local',
        'slurm',
        '/dev/null',
        'c.yaml',
        '\udcff',
        'policy.learn.batch_size=[',
        'a=b',
        '=',
        'policy.__class__=3',
        'os:system',
        'nothing:here',
    ]
    for number in range(count):
        name = rng.choice(CONFIGS)
        config = plain_copy(GIVEN[name])
        set_path(config, rng.choice(PATHS[name]), rng.choice([v for v in NUMBERS + WORDS if not isinstance(v, bool)]))
        with open('c.yaml', 'w', encoding='utf-8') as file:
            yaml.safe_dump(config, file)
        argv = [
            '-m',
            rng.choice(['serial', 'serial', 'eval', 'collect', 'parallel']),
            '-c',
            rng.choice(['c.yaml', name, 'x']),
        ]
        argv += [word for text in FEW for word in ('-o', text)] + ['-s', '0', '--episodes', '1']
        for _ in range(rng.choice([0, 1, 1, 2])):
            argv += [rng.choice(options), rng.choice(values)]
        code, said = in_child(partial(main, argv), limit=60)
        endless = code is None and 'this round has taken' in said  # so many updates were asked for, and it says so
        answered = code in (0, 2) or endless
        assert answered and 'Traceback' not in said, (number, argv, config, code, said[-3000:])


# ---- what was accepted, runs
SMALL = [0, 1, 2, 3, 4, 5, 8, 16, 40, 0.1, 0.5, 0.9, 1.0, 2.5, True, False, None, 'inf', [8], [16, 8], {}]
BESIDE = ('exp_name', 'seed', 'import_names', 'parallel', 'env.replay_path')  # of no effect, or on files


def mutants(seed, count):
    """Configs with other values that were accepted."""
    rng = random.Random(seed)
    short = ['commander.max_env_step=300', 'evaluator.n_episode=1', 'env.evaluator_env_num=1', 'policy.torch_threads=1']
    while count:
        name = rng.choice(CONFIGS)
        config = plain_copy(GIVEN[name])
        leaves = [p for p in all_paths(WHOLE[name]) if not isinstance(get_path(WHOLE[name], p), dict)]
        changes = {path: rng.choice(SMALL) for path in rng.sample([p for p in leaves if not p.startswith(BESIDE)], 3)}
        for path, value in changes.items():
            set_path(config, path, plain_copy(value))
        try:
            compile_config(config, overrides=short, needs_env=True)
        except ConfigError:
            continue
        count -= 1
        yield name, changes, config, short


def run_mutants(seed, count):
    from nervex.entry import serial_pipeline
    from nervex.utils.errors import NervexError

    def run(config, overrides):
        try:
            serial_pipeline(config, seed=0, overrides=overrides)
        except NervexError as error:  # one message, such as of a loss that is not finite
            print(f'said: {error}')

    for name, changes, config, short in mutants(seed, count):
        code, said = in_child(partial(run, config, short), limit=120)
        assert code == 0 and 'Traceback' not in said, (name, changes, code, said[-3000:])


def test_accepted_mutants_run_short():
    run_mutants(0, 3)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_accepted_mutants_run():
    run_mutants(1, 200)
