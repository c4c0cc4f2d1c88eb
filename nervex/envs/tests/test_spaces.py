"""What becomes of each kind of space, and of its actions and observations."""

import numpy as np
import pytest
from gymnasium import spaces

from nervex.envs.spaces import ActionCodec, ObsCodec, to_gymnasium


def test_discrete_action_with_a_first_value():
    codec = ActionCodec(spaces.Discrete(3, start=-1))
    assert codec.info.shape == (3,) and codec.info.value['n'] == 3 and codec.info.value['kind'] == 'discrete'
    for action in (2, np.array(2), np.array([2]), np.int64(2)):
        answer = codec.to_env(action)
        assert answer == 1 and type(answer) is int


def test_multi_discrete_and_multi_binary_actions():
    codec = ActionCodec(spaces.MultiDiscrete([2, 3]))
    assert codec.info.shape == (2,) and codec.info.value['n'] == (2, 3)
    assert codec.info.value['kind'] == 'multi_discrete'
    assert codec.to_env(np.array([1, 2])).tolist() == [1, 2]
    with pytest.raises(ValueError, match='2 parts'):
        codec.to_env([1])
    binary = ActionCodec(spaces.MultiBinary(3))
    assert binary.info.value['n'] == (2, 2, 2) and spaces.MultiBinary(3).contains(binary.to_env([1, 0, 1]))


def test_tuple_of_discretes_as_action():
    space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3, start=1)])
    codec = ActionCodec(space)
    assert codec.info.value['n'] == (2, 3) and codec.to_env(np.array([1, 2])) == (1, 3)
    assert space.contains(codec.to_env([0, 0]))


def test_box_action_is_scaled_and_clipped():
    space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))
    plain, scaled = ActionCodec(space), ActionCodec(space, use_act_scale=True)
    assert plain.to_env([3.0, 4.0]).tolist() == [3.0, 4.0]
    assert scaled.to_env([0.5, 0.0]).tolist() == [1.0, 5.0] and scaled.to_env([-7.0, 1.0]).tolist() == [-2.0, 10.0]
    assert (scaled.info.value['min'], scaled.info.value['max']) == (-1.0, 1.0)
    assert space.contains(scaled.to_env([1.0, 1.0]))
    with pytest.raises(ValueError, match='no finite bounds'):
        ActionCodec(spaces.Box(-np.inf, np.inf, (1,)), use_act_scale=True)


@pytest.mark.parametrize('shape', [(2, 3), (), (1,)])
def test_a_box_action_is_a_row_of_numbers_that_the_env_gets_in_its_shape(shape):
    codec, scaled = (ActionCodec(spaces.Box(-2, 2, shape, np.float64), use) for use in (False, True))
    size = int(np.prod(shape))
    assert codec.info.shape == scaled.info.shape == (size,)
    answer, stretched = (c.to_env(np.full(size, 0.5, np.float32)) for c in (codec, scaled))
    assert answer.shape == stretched.shape == shape and answer.dtype == stretched.dtype == np.float64
    assert (answer == 0.5).all() and (stretched == 1.0).all()
    assert ActionCodec(spaces.Box(-1, 1, shape)).plain == (len(shape) == 1)


def test_an_observation_of_one_number_is_a_vector():
    codec = ObsCodec(spaces.Box(-1, 1, ()))
    assert codec.info.shape == (1,) and codec(np.float32(0.5)).tolist() == [0.5] and not codec.plain


def test_flatten_leaves_the_action_mask_beside_the_rest():
    codec = ObsCodec(
        spaces.Dict(a=spaces.Box(0, 1, (2,)), action_mask=spaces.MultiBinary(3), b=spaces.Discrete(2)), flatten=True
    )
    assert codec.info.shape == {'observation': (4,), 'action_mask': (3,)}
    obs = codec({'a': np.array([1.0, 2.0]), 'action_mask': np.array([0, 1, 1], np.int8), 'b': 1})
    assert obs['observation'].tolist() == [1.0, 2.0, 0.0, 1.0] and obs['action_mask'].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    'space', [spaces.Dict(a=spaces.Discrete(2)), spaces.Text(3), spaces.Tuple([spaces.Box(0, 1, (1,))])]
)
def test_other_action_spaces_are_refused_with_a_remedy(space):
    with pytest.raises(TypeError, match='write a BaseEnv'):
        ActionCodec(space)


def test_box_observations_keep_uint8_and_narrow_float64():
    codec = ObsCodec(spaces.Box(0, 255, (2, 2), np.uint8))
    assert codec(np.ones((2, 2), np.uint8)).dtype == np.uint8 and codec.plain and codec.info.value['max'] == 255
    codec = ObsCodec(spaces.Box(-1, 1, (2,), np.float64))
    assert codec(np.ones(2)).dtype == np.float32 and codec.info.value['dtype'] is np.float32 and not codec.plain


def test_bounds_are_numbers_where_they_are_all_equal():
    assert ObsCodec(spaces.Box(-1, 1, (2,))).info.value['min'] == -1.0
    assert ObsCodec(spaces.Box(np.array([0.0, -1.0]), np.array([1.0, 1.0]))).info.value['min'].tolist() == [0.0, -1.0]


def test_discrete_observations_are_one_hot():
    codec = ObsCodec(spaces.Discrete(4, start=1))
    assert codec(3).tolist() == [0.0, 0.0, 1.0, 0.0] and codec.info.shape == (4,)
    codec = ObsCodec(spaces.MultiDiscrete([2, 3]))
    assert codec(np.array([1, 2])).tolist() == [0.0, 1.0, 0.0, 0.0, 1.0] and codec.info.shape == (5,)
    codec = ObsCodec(spaces.Discrete(4, start=1), one_hot=False)
    assert codec(3) == 2 and codec.info.shape == () and codec.info.value['n'] == 4


def test_dict_and_tuple_observations():
    space = spaces.Dict(a=spaces.Box(0, 1, (2,)), b=spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]))
    codec = ObsCodec(space)
    obs = codec({'a': np.array([0.1, 0.2], np.float32), 'b': (1, np.array([0, 1], np.int8))})
    assert codec.info.shape == {'a': (2,), 'b': {'0': (2,), '1': (2,)}}
    assert obs['b']['0'].tolist() == [0.0, 1.0] and obs['b']['1'].dtype == np.float32
    flat = ObsCodec(space, flatten=True)
    assert flat.info.shape == (6,)
    assert flat({'a': np.array([1.0, 2.0]), 'b': (1, np.array([0, 1]))}).tolist() == [1.0, 2.0, 0.0, 1.0, 0.0, 1.0]


def test_flatten_joins_pixels_too():
    codec = ObsCodec(spaces.Box(0, 255, (2, 3), np.uint8), flatten=True)
    obs = codec(np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert codec.info.shape == (6,) and obs.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and obs.dtype == np.float32


def test_text_is_left_out_with_one_warning(caplog):
    space = spaces.Dict(x=spaces.Box(0, 1, (1,)), errand=spaces.Text(9))
    codec = [ObsCodec(space) for _ in range(3)][-1]
    assert list(codec({'x': np.zeros(1, np.float32), 'errand': 'go'})) == ['x'] and caplog.text.count('errand') == 1
    with pytest.raises(TypeError, match='nothing that a model can take'):
        ObsCodec(spaces.Dict(mission=spaces.Text(9)))


def test_unknown_observation_space_is_refused():
    with pytest.raises(TypeError, match='not supported'):
        ObsCodec(spaces.Sequence(spaces.Discrete(2)))


@pytest.mark.parametrize(
    'space',
    [
        spaces.Discrete(3),
        spaces.MultiDiscrete([2, 3]),
        spaces.Box(-2, 2, (3,)),
        spaces.Box(np.array([0.0, -1.0], np.float32), np.array([1.0, 1.0], np.float32)),
    ],
)
def test_action_description_back_to_gymnasium(space):
    assert to_gymnasium(ActionCodec(space).info) == space


def test_dict_description_back_to_gymnasium():
    space = spaces.Dict(a=spaces.Box(0, 255, (2, 2), np.uint8), b=spaces.Box(-1, 1, (3,)))
    assert to_gymnasium(ObsCodec(space).info) == space
