import logging
from collections import namedtuple

import pytest

import nervex
from nervex.hpc_rl import find_hpc_op, hpc_wrapper, register_hpc_op, wrapper

pair = namedtuple('pair', ['x', 'y'])


@pytest.fixture(autouse=True)
def operators(monkeypatch):
    monkeypatch.setattr(wrapper, '_operators', {})
    monkeypatch.setattr(wrapper, '_builtin_loaded', True)
    monkeypatch.setattr(nervex, 'enable_hpc_rl', True)


def test_flag_is_read_on_every_call(monkeypatch):
    @hpc_wrapper()
    def plus(x):
        return x + 1

    register_hpc_op('plus', lambda x: -x)
    assert plus(3) == -3 and plus.__name__ == 'plus'
    monkeypatch.setattr(nervex, 'enable_hpc_rl', False)
    assert plus(3) == 4


def test_operator_may_decline():
    @hpc_wrapper()
    def half(x):
        return x / 2

    register_hpc_op('half', lambda x: NotImplemented if x < 0 else 100)
    assert half(1) == 100 and half(-1) == -0.5


def test_selected_arguments_of_a_namedtuple():
    @hpc_wrapper(namedtuple_data=True, include_args=[1], include_kwargs=['scale'])
    def loss(data, gamma, nstep, scale=1, other=None):
        return 'plain'

    register_hpc_op('loss', lambda *args, **kwargs: (args, kwargs))
    assert loss(pair(1, 2), 0.9, 5, scale=3, other=4) == ((1, 2, 0.9), {'scale': 3})


def test_one_instance_for_each_shape():
    built = []

    class Operator:
        def __init__(self, *shape):
            built.append(shape)

        def __call__(self, x):
            return len(x)

    @hpc_wrapper(shape_fn=lambda args: (len(args[0]),))
    def size(x):
        return None

    register_hpc_op('size', Operator)
    assert [size('ab'), size('cd'), size('e')] == [2, 2, 1] and built == [(2,), (1,)]


def test_method_does_not_hand_over_self():
    class Model:
        @hpc_wrapper(is_cls_method=True, name='model_forward')
        def forward(self, x):
            return self, x

    register_hpc_op('model_forward', lambda x: x)
    assert Model().forward(5) == 5


def test_without_numba_nothing_changes_and_it_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(wrapper, '_builtin_loaded', False)
    monkeypatch.setitem(__import__('sys').modules, 'nervex.hpc_rl.operators', None)
    with caplog.at_level(logging.WARNING):
        assert find_hpc_op('gae') is None and find_hpc_op('gae') is None
    assert caplog.text.count('pip install nervex[fast]') == 1
