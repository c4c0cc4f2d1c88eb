import pytest
from easydict import EasyDict

from nervex.loader import (
    CompositeStructureError,
    DictError,
    MappingError,
    collection,
    dict_,
    interval,
    is_positive,
    is_type,
    item,
    item_or,
    keep,
    mapping,
    mcmp,
    mpfilter,
    mpitems,
    mpkeys,
    mpvalues,
    msum,
    norm,
    optional,
    raw,
)


def test_dict_builds_a_new_dict_from_the_whole_value():
    assert dict_(b=item('a'), a=item('b'))({'a': 1, 'b': 2}) == {'a': 2, 'b': 1}
    two = dict_(real=msum(item('a'), item('b')), said=item('sum') | item('result')) >> dict_(
        right=norm(item('real')) == norm(item('said'))
    )
    assert two({'a': 1, 'b': 2, 'result': 3}) == {'right': True}
    assert two({'a': 1, 'b': 2, 'sum': 4}) == {'right': False}


def test_dict_reports_every_entry_that_fails():
    with pytest.raises(DictError) as caught:
        dict_(a=item('a'), b=item('b') >> is_type(int), c=item('c'))({'b': 'x', 'c': 1})
    assert set(caught.value.errors) == {'a', 'b'}
    assert isinstance(caught.value.errors['a'], KeyError) and isinstance(caught.value.errors['b'], TypeError)


def test_mapping_reports_keys_and_values():
    loader = mapping(str, optional(is_type((int, float))))
    assert loader({'a': 1, 'c': None}) == {'a': 1, 'c': None}
    assert type(loader(EasyDict(a=1))) is EasyDict
    with pytest.raises(MappingError) as caught:
        loader({'a': 1, 345: 'x', 'b': [], None: 3})
    error = caught.value
    assert [key for key, _ in error.key_errors()] == [345, None]
    assert [key for key, _ in error.value_errors()] == [345, 'b']
    assert len(error.errors()) == 4
    with pytest.raises(TypeError):
        loader([('a', 1)])


def test_parts_of_a_mapping():
    value = {'a': 1, 'b': 2}
    assert mpfilter(lambda k, v: v > 1)(value) == {'b': 2}
    assert (mpkeys()(value), mpvalues()(value), mpitems()(value)) == ({'a', 'b'}, {1, 2}, {('a', 1), ('b', 2)})


def test_item_suggests_the_nearest_key_and_item_or_has_a_default():
    with pytest.raises(KeyError, match="did you mean 'learning_rate'"):
        item('learnig_rate')({'learning_rate': 1})
    assert item(1)([5, 6]) == 6
    with pytest.raises(IndexError):
        item(9)([5, 6])
    assert item_or('a', 0)({}) == 0 and item_or(3, 0)([1]) == 0 and item_or('a', 0)({'a': None}) is None


CARTPOLE_PPO = dict(
    env=dict(env_type='cartpole', actor_env_num=8),
    policy=dict(
        policy_type='ppo',
        learn=dict(batch_size=64, learning_rate=3e-4),
        collect=dict(unroll_len=1, traj_len='inf'),
    ),
)


def whole_config():
    positive_int = is_type(int) & is_positive()
    traj_len = positive_int | ((lambda v: v == 'inf', 'must be inf') >> raw(float('inf')))
    elements = dict_(
        env=item('env')
        >> dict_(
            env_type=item('env_type') >> is_type(str),
            actor_env_num=item('actor_env_num') >> interval(1, 32),
        ),
        policy=item('policy')
        >> dict_(
            on_policy=item('on_policy') | raw(True),
            learn=item('learn')
            >> dict_(
                batch_size=item('batch_size') >> positive_int,
                learning_rate=item('learning_rate') >> interval(0, 1, left_ok=False),
            ),
            collect=item('collect')
            >> dict_(
                unroll_len=item('unroll_len') >> positive_int,
                traj_len=item('traj_len') >> traj_len,
            ),
        ),
        model_dims=item_or('dims', [4, 2]) >> collection(int),
    )
    collect = item('policy') >> item('collect')
    return elements >> mcmp(collect >> item('unroll_len'), '<=', collect >> item('traj_len'))


def test_a_whole_config_is_loaded_with_defaults_and_a_relation_between_fields():
    loaded = whole_config()(CARTPOLE_PPO)
    assert loaded['policy']['on_policy'] is True and loaded['policy']['collect']['traj_len'] == float('inf')
    short = {**CARTPOLE_PPO, 'policy': {**CARTPOLE_PPO['policy'], 'collect': dict(unroll_len=8, traj_len=4)}}
    with pytest.raises(ValueError, match='8 <= 4 does not hold'):
        whole_config()(short)


def test_a_whole_config_reports_all_mistakes_with_their_paths():
    policy = dict(learn=dict(batch_size=1.5), collect=dict(unroll_len=1))
    bad = dict(env=dict(env_type=3, actor_env_num=0), policy=policy)
    with pytest.raises(CompositeStructureError) as caught:
        whole_config()(bad)
    assert [path for path, _ in caught.value.flatten()] == [
        'env.env_type',
        'env.actor_env_num',
        'policy.learn.batch_size',
        'policy.learn.learning_rate',
        'policy.collect.traj_len',
    ]


def test_nothing_in_the_input_changes():
    value = {'a': {'b': [1, 2]}}
    dict_(a=item('a') >> dict_(b=item('b') >> keep()))(value)
    assert value == {'a': {'b': [1, 2]}}
