"""Whatever is wrong with a config, the answer is a ConfigError; whatever is accepted resolves to itself."""

import random

import pytest

from nervex.config import ConfigError, compile_config, save_config
from nervex.config.tree import plain_copy, set_path

GARBAGE = [
    None,
    True,
    0,
    -1,
    7,
    1.5,
    float('nan'),
    float('inf'),
    '',
    'inf',
    'text',
    'a.b',
    [],
    [1, 'a'],
    (),
    {},
    {'type': 'x'},
    {'x': {'y': 1}},
    {3: 4},
    object,
    len,
    b'bytes',
    {1, 2},
    [{'a': 1}],
    {'type': None},
    {'buffer_name': 3},
]


def leaves(tree, prefix=''):
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value


def inner_paths(tree, prefix=''):
    for key, value in tree.items():
        yield f'{prefix}{key}'
        if isinstance(value, dict):
            yield from inner_paths(value, f'{prefix}{key}.')


@pytest.mark.parametrize('seed', range(8))
def test_garbage_anywhere_never_crashes(config, seed, tmp_path):
    rng = random.Random(seed)
    whole = plain_copy(compile_config(config))
    paths = sorted(set(inner_paths(whole)) | {f'{path}.extra' for path, _ in leaves(whole)})
    accepted = 0
    for _ in range(150):
        broken = plain_copy(whole if rng.random() < 0.5 else config)
        for path in rng.sample(paths, rng.choice([1, 1, 2, 4])):
            set_path(broken, path, plain_copy(rng.choice(GARBAGE)))
        before = repr(broken)
        try:
            resolved = compile_config(broken)
        except ConfigError as error:
            assert all(isinstance(line, str) and line and '\n' not in line for line in error.problems)
        else:
            accepted += 1
            assert repr(compile_config(resolved)) == repr(resolved)
            save_config(resolved, tmp_path / 'c.yaml')
        assert repr(broken) == before
    assert accepted  # the test also walks the other branch
