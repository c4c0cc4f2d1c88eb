import copy
import importlib
import inspect
import pickle
import subprocess
import sys
import types

import pytest
import torch
from easydict import EasyDict

import nervex.model
from nervex.config import compile_config
from nervex.model import MODEL_REGISTRY, FCDiscreteNet, create_model
from nervex.policy import create_policy

AGENTS = {'agent_num': 3, 'obs_dim': 4, 'global_obs_dim': 5, 'action_dim': 2}
ARGUMENTS = {
    'fc_discrete_net': {'obs_dim': 4, 'action_dim': 2},
    'conv_discrete_net': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'fcr_discrete_net': {'obs_dim': [4], 'action_dim': [2, 3]},
    'convr_discrete_net': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'noise_fc': {'obs_dim': 4, 'action_dim': 2},
    'noise_dist_fc': {'obs_dim': 4, 'action_dim': 2},
    'noise_dist_conv': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'noise_quantile_fc': {'obs_dim': 4, 'action_dim': 2},
    'noise_quantile_conv': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'qr_fc': {'obs_dim': 4, 'action_dim': 2},
    'qr_conv': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'sqn': {'obs_dim': 4, 'action_dim': 2},
    'fc_vac': {'obs_dim': 4, 'action_dim': 2},
    'conv_vac': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'qac': {'obs_dim': 4, 'action_dim': 2},
    'sac': {'obs_dim': 4, 'action_dim': 2},
    'fc_ppg': {'obs_dim': 4, 'action_dim': 2},
    'conv_ppg': {'obs_dim': [1, 36, 36], 'action_dim': 2, 'embedding_dim': 8},
    'qmix': AGENTS,
    'collaq': {**AGENTS, 'alone_obs_dim': 2},
    'coma': AGENTS,
    'atoc': {'obs_dim': 4, 'action_dim': 2},
}


def observation_of(name):
    if name == 'atoc':
        return torch.randn(2, 5, 4)
    if 'agent_num' in ARGUMENTS[name]:
        states = {'agent_state': torch.randn(2, 3, 4), 'global_state': torch.randn(2, 5)}
        return {**states, 'agent_alone_state': torch.randn(2, 3, 2), 'agent_alone_padding_state': torch.randn(2, 3, 4)}
    return torch.zeros(2, 1, 36, 36, dtype=torch.uint8) if 'conv' in name else torch.randn(2, 4)


def test_every_registered_model_is_covered_here():
    assert set(ARGUMENTS) <= set(MODEL_REGISTRY.query())
    assert all(hasattr(nervex.model, name) for name in nervex.model.__all__)


@pytest.mark.parametrize('name', sorted(ARGUMENTS))
def test_built_from_a_config_it_runs_copies_pickles_and_learns(name):
    cfg = EasyDict({'model_type': name, 'import_names': [], **ARGUMENTS[name]})
    kept = copy.deepcopy(cfg)
    model = create_model(cfg)
    assert cfg == kept
    data = {'obs': observation_of(name)}
    torch.manual_seed(0)
    output = model(data)
    assert isinstance(output, dict)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.manual_seed(0)
        first = next(key for key in ('logit', 'action') if key in output)
        if not isinstance(output[first], torch.Tensor) or name == 'sac':
            continue
        assert torch.equal(twin(data)[first], output[first])
    loss = sum(x.sum() for x in tensors(output) if x.requires_grad)
    loss.backward()
    assert any(p.grad is not None and (p.grad != 0).any() for p in model.parameters())


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [x for part in parts for x in tensors(part)]


def test_a_class_instead_of_a_name():
    assert isinstance(create_model({'model_type': FCDiscreteNet, 'obs_dim': 4, 'action_dim': 2}), FCDiscreteNet)


def test_a_users_model_registers_itself_when_its_module_is_imported(monkeypatch):
    module = types.ModuleType('users_models')
    monkeypatch.setitem(sys.modules, 'users_models', module)

    @MODEL_REGISTRY.register('users_net')
    class UsersNet(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width

    assert create_model({'model_type': 'users_net', 'import_names': ['users_models'], 'width': 3}).width == 3


@pytest.mark.parametrize(
    'cfg, text',
    [
        ({'obs_dim': 4}, r'model_type: missing.*fc_discrete_net'),
        ({'model_type': 'fc_discret_net', 'obs_dim': 4}, "did you mean 'fc_discrete_net'"),
        ({'model_type': 'fc_discrete_net', 'obs_dim': 4}, r"'action_dim'.*hidden_dim_list"),
        ({'model_type': 'fc_discrete_net', 'obs_dim': 4, 'action_dim': 2, 'embeding_dim': 3}, 'embeding_dim'),
        (
            {'model_type': 'fc_vac', 'import_names': ['nervex.modles']},
            r"import_names: cannot import 'nervex.modles'",
        ),
    ],
)
def test_mistakes_are_named(cfg, text):
    with pytest.raises((ValueError, KeyError), match=text):
        create_model(cfg)


def test_a_named_net_has_the_settings_of_its_parts_and_no_others():
    taken = inspect.signature(MODEL_REGISTRY.get('noise_dist_conv')).parameters
    assert {'v_min', 'n_atom', 'noise_sigma', 'channels', 'dueling'} <= set(taken)
    assert not {'norm', 'lstm_type', 'num_quantiles', 'head_kwargs', 'self'} & set(taken)
    assert taken['embedding_dim'].default == 512 and taken['channels'].default == (32, 64, 64)
    with pytest.raises(TypeError, match='lstm_type'):
        FCDiscreteNet(4, 2, lstm_type='gru')


def test_a_users_subclass_of_a_named_net_has_the_arguments_that_it_says():
    class Small(FCDiscreteNet):
        def __init__(self, obs_dim, action_dim, width=8):
            super().__init__(obs_dim, action_dim, hidden_dim_list=[width], norm=True)

    assert list(inspect.signature(Small).parameters) == ['obs_dim', 'action_dim', 'width']
    assert Small(4, 2, width=16).encoder.out_dim == 16


@pytest.mark.parametrize('family', ['actor_critic', 'discrete_net', 'qmix'])
def test_a_familys_package_exports_its_classes(family):
    package = importlib.import_module(f'nervex.model.{family}')
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is getattr(nervex.model, name, None) or name == 'RecurrentValueAC'


@pytest.mark.slow
def test_importing_one_name_imports_no_other():
    code = 'import sys; from nervex.model import FCDiscreteNet; print("nervex.model.qmix.qmix" in sys.modules)'
    answer = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == 'False'


LAYERS = [
    {'layer_type': 'linear', 'layer_dim': [12], 'activation': 'tanh'},
    {'layer_type': 'linear', 'layer_dim': 8, 'activation': 'relu'},
]


@pytest.mark.parametrize('name', sorted(set(ARGUMENTS) - {'atoc'}))
def test_layers_as_dicts_have_their_widths_and_activations(name):
    arguments = {k: v for k, v in ARGUMENTS[name].items() if k != 'embedding_dim'}
    models = []
    for layers in (LAYERS, [12, 8], [12, {'layer_dim': [8]}]):
        torch.manual_seed(0)
        models.append(create_model({'model_type': name, **arguments, 'hidden_dim_list': layers}))
    weights = [[p.detach() for p in model.parameters()] for model in models]
    assert all(all(map(torch.equal, weights[0], other)) for other in weights[1:])
    obs, outputs = observation_of(name), []
    for model in models:
        torch.manual_seed(1)
        outputs.append(torch.cat([x.flatten() for x in tensors(model({'obs': obs}))]))
    assert torch.equal(outputs[1], outputs[2]) and not torch.allclose(outputs[0], outputs[1])


@pytest.mark.parametrize('wrong', [[8, 'x'], [-1], 8, '8', [{'layer_type': 'conv', 'layer_dim': 8}], [{'width': 3}]])
@pytest.mark.parametrize('name', ['fc_discrete_net', 'fc_vac', 'qac', 'sac', 'qmix'])
def test_wrong_layers_are_named_with_the_rule_and_the_remedy(name, wrong):
    with pytest.raises(ValueError, match=r'hidden_dim_list holds the widths of layers, .* got .*; write \[64, 64\]'):
        create_model({'model_type': name, **ARGUMENTS[name], 'hidden_dim_list': wrong})


@pytest.mark.parametrize('name', ['FCDiscreteNet', 'FCValueAC', 'QAC', 'SACModel', 'SQNDiscreteNet', 'FCPPG'])
def test_widths_in_the_place_of_another_argument_are_a_mistake_with_a_remedy(name):
    with pytest.raises(ValueError, match=r'got \[8\]; the widths of .*layers are hidden_dim_list=\[\.\.\.\]'):
        getattr(nervex.model, name)(4, 2, [8])


@pytest.mark.parametrize('policy, key', [('dqn', 'value_layers'), ('ppo', 'value_layers'), ('td3', 'critic_layers')])
def test_a_config_may_list_layers_as_dicts(policy, key):
    env = dict(env_type='gym', env_id='Pendulum-v1' if policy == 'td3' else 'CartPole-v1')
    cfg = dict(env=env, policy=dict(policy_type=policy, model={key: LAYERS}), actor=dict(n_sample=8))
    resolved = compile_config(cfg)
    assert compile_config(resolved) == resolved
    net = str(create_policy(resolved.policy)._model)
    assert 'out_features=12' in net and 'out_features=8' in net
