import functools

import pytest

from nervex.config import ConfigError, compile_config


def problems_of(config, **kwargs):
    with pytest.raises(ConfigError) as caught:
        compile_config(config, **kwargs)
    return caught.value.problems


def test_dimensions_may_be_left_to_the_env(config):
    config['policy']['model'] = {}
    assert compile_config(config).policy.model == {}
    config['policy']['model'] = dict(obs_dim=[4, 84, 84], action_dim=2)
    assert compile_config(config).policy.model.obs_dim == [4, 84, 84]


def test_what_the_signature_needs_must_be_there(config):
    class Own:
        def __init__(self, obs_dim, width, depth=2):
            pass

    config['policy']['model'] = dict(dpth=1)
    problems = problems_of(config, model=Own)
    assert problems[0].startswith("policy.model.dpth: unknown setting; did you mean 'depth'?")
    assert problems[1] == 'policy.model.width: missing; Own needs it'


def test_keyword_arguments_keep_the_section_open(config):
    class Own:
        def __init__(self, obs_dim, **kwargs):
            pass

    config['policy']['model'] = dict(anything=1)
    assert compile_config(config, model=Own).policy.model.anything == 1


def test_a_model_that_is_built_already_is_not_checked(config):
    config['policy']['model'] = dict(anything=1)
    assert compile_config(config, model=object()).policy.model.anything == 1


def test_a_partial_is_checked_by_what_is_left_of_its_signature(config, fakes, monkeypatch):
    from nervex.utils import MODEL_REGISTRY

    monkeypatch.setitem(MODEL_REGISTRY._entries, 'small_net', functools.partial(fakes['FakeNet'], embedding_dim=8))
    config['policy']['model'] = dict(model_type='small_net', dueling=False)
    assert compile_config(config).policy.model.model_type == 'small_net'
    config['policy']['model']['dueling'] = 'no'
    assert problems_of(config) == ["policy.model.dueling: got 'no', must be a bool; write false"]


@pytest.mark.parametrize(
    'given, words',
    [
        (dict(sizes='wide'), "sizes: got 'wide', must be list[int] | None"),
        (dict(sizes=[1, 'a']), "sizes: got [1, 'a'], must be list[int] | None"),
        (dict(dim=2.5), 'dim: got 2.5, must be int | list[int]'),
        (dict(rate='fast'), "rate: got 'fast', must be a float"),
        (dict(dim=[4, 84, 84], sizes=None, rate=1, other=object()), None),
        (dict(dim=(4, 84), sizes=[]), None),
    ],
)
def test_plain_annotations_are_checked(config, given, words):
    class Own:
        def __init__(
            self, dim: int | list[int] = 1, sizes: list[int] | None = None, rate: float = 0.0, other: 'Own' = 0
        ):
            pass

    config['policy']['model'] = given
    if words is None:
        compile_config(config, model=Own)
    else:
        assert problems_of(config, model=Own) == [f'policy.model.{words}']


def test_the_policys_model_settings_are_for_its_own_model_only(config, fakes):
    own = type('Own', (fakes['FakePolicy'],), dict(config=dict(model=dict(embedding_dim=32))))

    class Net:
        def __init__(self, obs_dim, action_dim):
            pass

    config['policy']['model'] = {}
    assert compile_config(config, policy=own).policy.model == dict(embedding_dim=32)
    assert compile_config(config, policy=own, model=Net).policy.model == {}


def test_a_policy_that_builds_its_model_itself_keeps_the_section_open(config, fakes):
    build = dict(config={}, _create_model_from_cfg=lambda self, cfg, model_type=None: None)
    own = type('Own', (fakes['FakePolicy'],), build)
    config['policy']['model'] = dict(anything=1)
    assert compile_config(config, policy=own).policy.model.anything == 1


def test_a_default_model_may_depend_on_the_config(config, fakes):
    class Own(fakes['FakePolicy']):
        config = dict(wide=False)

        def default_model(self):
            return ('no_such_net' if self._cfg.wide else 'fake_net'), []

    compile_config(config, policy=Own)
    config['policy']['wide'] = True
    assert problems_of(config, policy=Own)[0].startswith("policy.model: unknown model 'no_such_net'")


def test_a_default_model_that_fails_is_reported(config, fakes):
    own = type('Own', (fakes['FakePolicy'],), dict(config={}, default_model=lambda self: 1 / 0))
    (problem,) = problems_of(config, policy=own)
    assert problem == 'policy.model: Own.default_model() failed: ZeroDivisionError: division by zero'


def test_a_policys_model_defaults_leave_room_for_other_arguments_of_the_model(config, fakes):
    class Own(fakes['FakePolicy']):
        config = dict(fakes['FakePolicy'].config, model=dict(dueling=False))

    config['policy']['model'] = dict(embedding_dim=8)
    model = compile_config(config, policy=Own).policy.model
    assert model.embedding_dim == 8 and model.dueling is False
    config['policy']['model'] = dict(embeding_dim=8)
    assert "did you mean 'embedding_dim'" in problems_of(config, policy=Own)[0]
