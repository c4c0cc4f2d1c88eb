import json
import subprocess
import sys
import zipfile
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import nervex
from nervex import Agent, runtime
from nervex.graph.exported import ExportError, numpy_program, traced
from nervex.policy.tests.test_combinations import KINDS, NAMES, BothBoards, ForbiddenEnv, kinds_of
from nervex.run.acting import Acting
from nervex.run.defaults import config_for
from nervex.run.export import _example, export_policy
from nervex.run.tests.own_envs import Pictures, Reach, ReachByNumber
from nervex.utils import POLICY_REGISTRY, CheckpointError, NothingThereError, tree

ENVS = {**KINDS, 'game': BothBoards}
CASES = [(name, kind) for name in NAMES for kind in kinds_of(POLICY_REGISTRY.get(name))]
#: of each kind of acting one, quickly; all of them in the slow part
QUICK = ('a2c', 'alphazero', 'atoc', 'ddpg', 'dqn', 'mappo', 'ppo', 'qmix', 'qrdqn', 'r2d2', 'rainbow_dqn', 'sac')
MASKED = [name for name, kind in CASES if kind == 'discrete' and POLICY_REGISTRY.get(name).takes_action_mask]
FEW = dict(evaluator=dict(n_episode=1))
PPO, DQN = dict(actor=dict(n_sample=128), **FEW), dict(learn=dict(init_data_count=8), **FEW)

#: kinds of files that one graph is written as; those that need packages apart
TOGETHER = [('.pt2', '.npz'), ('.onnx',)]
CONV = dict(model_type='convr_vac', channels=[8, 8], kernels=[3, 3], strides=[1, 2])


def config(name, env, **model):
    """A run of this policy on an env of this class."""
    return dict(policy=dict(policy_type=name, model=model), env=dict(env_type=env), actor=dict(n_sample=8))


def observations(space, seed):
    rows = list(_example(space, seed))
    return rows, rows if isinstance(rows[0], (dict, tuple)) else np.stack(rows)


def check(cfg, tmp_path, ending='.npz', checkpoint=None):
    """The file acts as ``predict`` does, three steps long, for rows together and for one alone."""
    if ending == '.onnx':
        pytest.importorskip('onnxscript'), pytest.importorskip('onnxruntime')
    path = str(tmp_path / f'policy{ending}')
    about = export_policy(cfg, checkpoint, path)
    acting, policy = Acting(cfg, checkpoint), runtime.load(path)
    assert policy.about == about
    if not acting.policy.exported_as:
        for step in range(3):
            rows, whole = observations(acting.space, step)
            expected, found = np.asarray(acting(whole)), np.asarray(policy.predict(tree.stack(rows)))
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        policy.reset(), acting.reset()
        one, other = policy.predict(rows[0]), acting(rows[0])
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
        assert isinstance(one, tuple) == isinstance(other, tuple)
    return policy


# ---- every policy
@pytest.mark.parametrize(
    'name, kind', [pytest.param(*case, marks=[] if case[0] in QUICK else pytest.mark.slow) for case in CASES]
)
def test_every_policy_acts_from_a_file_as_it_predicts(name, kind, tmp_path):
    check(config(name, ENVS[kind]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('ending', ['.onnx', '.pt2'])
@pytest.mark.parametrize('name, kind', CASES)
def test_every_policy_acts_so_in_onnxruntime_and_from_torch_export(name, kind, ending, tmp_path):
    check(config(name, ENVS[kind]), tmp_path, ending)


@pytest.mark.parametrize(
    'name', [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MASKED]
)
def test_it_keeps_to_legal_actions(name, tmp_path):
    policy = check(config(name, ForbiddenEnv), tmp_path)
    state = {key: np.random.default_rng(0).normal(size=shape) for key, shape in shapes(policy).items()}
    for legal in range(len(state['action_mask'])):
        action, _ = policy.act({**state, 'action_mask': np.eye(len(state['action_mask']))[legal]})
        assert action == legal


def shapes(policy):
    return {part['name'].partition('.')[2]: part['shape'] for part in policy.about['inputs'] if part['name'] != 'state'}


def test_a_policy_that_searches_is_exported_as_its_net_and_says_so(tmp_path):
    cfg = config('alphazero', BothBoards)
    policy = check(cfg, tmp_path)
    assert 'without a search' in policy.about['acts']
    acting = Acting(cfg)
    rows, _ = observations(acting.space, 0)
    data = acting.policy._model_input({key: torch.as_tensor(part) for key, part in tree.stack(rows).items()})
    logit = acting.policy._model(data)['logit'].masked_fill(data['action_mask'] == 0, -torch.inf)
    assert policy.act(tree.stack(rows))[0].tolist() == logit.argmax(-1).tolist()


# ---- envs and nets
@pytest.fixture
def traced_once(monkeypatch):
    """To trace takes longest, and gives the same graph for each kind of file."""
    found = []

    def once(*how):
        if not found:
            found.append(traced(*how))
        return found[0]

    monkeypatch.setattr('nervex.run.export.traced', once)


class Odd(gymnasium.Env):
    """Spaces that few envs have."""

    parts = (spaces.Discrete(3, start=1), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2), spaces.Box(-1, 1, ()))
    observation_space = spaces.Tuple((*parts, spaces.Dict({'x': spaces.Box(-1, 1, (2, 2), np.float64)})))
    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3, start=5)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, False, True, {}


class Bits(Odd):
    action_space = spaces.MultiBinary(3)


@pytest.mark.parametrize('endings', TOGETHER, ids=''.join)
@pytest.mark.parametrize(
    'name, env, given',
    [
        ('dqn', 'FrozenLake-v1', {}),
        ('ppo', 'Blackjack-v1', {}),
        ('ppo', Odd, {}),
        ('ppo', Reach, {}),
        ('sac', ReachByNumber, {}),
        ('ppo_recurrent', Pictures, dict(model=CONV)),
        ('dqn', Bits, dict(env=dict(one_hot_obs=False))),
    ],
)
def test_observations_and_actions_are_those_of_the_env(name, env, given, endings, tmp_path, traced_once):
    for ending in endings:
        check(config_for(name, env, **given), tmp_path, ending)


@pytest.mark.parametrize('endings', TOGETHER, ids=''.join)
@pytest.mark.parametrize('name, env, given', [('ppo', 'Pendulum-v1', PPO), ('r2d2', 'CartPole-v1', DQN)])
def test_a_trained_policy_is_exported_with_its_scaling_and_loaded_as_an_agent(
    name, env, given, endings, tmp_path, traced_once
):
    if endings == ('.onnx',):
        pytest.importorskip('onnxscript')
    agent = Agent(name, env, exp_name=str(tmp_path / 'run'), **given)
    agent.learn(600, progress=False)
    for ending in endings:
        path = str(tmp_path / f'policy{ending}')
        agent.export(path)
        policy, rng = Agent.load(path), gymnasium.make(env)
        obs, _ = rng.reset(seed=0)
        agent.reset()
        for _ in range(20):
            action = policy.predict(obs)
            np.testing.assert_allclose(action, agent.predict(obs), rtol=1e-6, atol=1e-6)
            obs, *_ = rng.step(action)
        with pytest.raises(AttributeError, match='evaluate: an exported policy only acts'):
            policy.evaluate()


# ---- the program for NumPy
class Net(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, torch.nn.ModuleList(layers)

    def forward(self, *inputs):
        return (self.function(*inputs, *self.layers),)


F = torch.nn.functional
NETS = {
    'activations': lambda x: sum(
        f(x) for f in (F.relu, torch.sigmoid, F.elu, F.leaky_relu, F.gelu, F.silu, F.softplus)
    ),
    'more activations': lambda x: F.gelu(x, approximate='tanh') + F.hardtanh(x) + F.mish(x) + F.relu6(x) + F.selu(x),
    'probabilities': lambda x: x.softmax(-1) + x.log_softmax(1) + x.logsumexp(-1, keepdim=True),
    'numbers': lambda x: x.abs().sqrt() + x.exp() * x.cos() - x.sin() / (x * x + 1).log() + x.abs().add(1).rsqrt() - -x,
    'powers': lambda x: x.pow(2) + 2**x + x.square() + x.sign() + x.floor() + x.round() + x.add(9).reciprocal(),
    'comparisons': lambda x: torch.where((x > 0) & ~(x >= 1) | (x < -1) | (x <= -2), x, 2.0 - x) + (x == 0) + (x != 1),
    'logic': lambda x: (
        torch.logical_xor(x > 0, x > 1).float() + torch.logical_and(x > 0, x < 1) + (x > 0).logical_not()
    ),
    'masks': lambda x: x.masked_fill(x > 0, -5.0).maximum(x).minimum(x + 1).clamp(min=-2),
    'reductions': lambda x: x.sum(-1) + x.mean(1) + x.amax(1) + x.amin(-1) + x.max(1).values - x.min(-1).values,
    'truth': lambda x: (x > 0).any(-1).float() + (x > 0).all(1) + x.argmax(-1) + x.argmin(1),
    'spread': lambda x: x.std(-1) + x.var(1, correction=0),
    'order': lambda x: x.sort(-1).values + x.topk(4, -1).indices + x.argsort(-1, descending=True) + x.cumsum(-1),
    'shapes': lambda x: torch.cat([x.unsqueeze(1).repeat(1, 2, 1).flatten(1), x.flip(-1)[:, ::2]], -1).roll(1, 1),
    'parts': lambda x: torch.stack([*x.chunk(2, -1)], 1).transpose(1, 2).reshape(-1, 4) + x[:, [3, 0, 1, 2]] + x[:, :1],
    'places': lambda x: x.gather(1, x.argsort(1)) + x.scatter(1, x.argsort(1)[:, :1], 0.0) + x.index_select(1, ORDER),
    'products': lambda x: (x.unsqueeze(1) @ x.unsqueeze(2)).squeeze(2) + x @ x.new_ones(4, 1),
    'twice': lambda x: torch.where(x[:, :1] > 0, x, x.detach()) + x.view(-1, 2, 2).expand(-1, -1, -1).flatten(1),
    'new ones': lambda x: x + torch.zeros_like(x) + x.new_full((x.shape[0], 1), 3) + torch.arange(x.shape[0])[:, None],
}
LAYERS = {
    'convolutions': (
        lambda x, *layers: layers[2](layers[1](layers[0](x.view(-1, 1, 2, 2).repeat(1, 2, 3, 3)))).flatten(1),
        torch.nn.Conv2d(2, 4, 3, stride=2, padding=2, dilation=2, groups=2),
        torch.nn.BatchNorm2d(4),
        torch.nn.MaxPool2d(2),
    ),
    'norm': (lambda x, a, b: a(x) + b(x), torch.nn.LayerNorm(4), torch.nn.BatchNorm1d(4)),
    'attention': (lambda x, a: a(x.view(-1, 2, 2)), torch.nn.TransformerEncoderLayer(2, 1, 8, batch_first=True)),
    'lstm': (lambda x, a: a(x.view(-1, 2, 2))[0], torch.nn.LSTM(2, 3, batch_first=True, bidirectional=True)),
    'gru': (lambda x, a: a(x.view(-1, 2, 2))[0], torch.nn.GRU(2, 3, batch_first=True)),
    'embedding': (lambda x, a: a((x > 0).long()), torch.nn.Embedding(2, 3)),
}
ORDER = torch.tensor([3, 1, 0, 2])


def test_each_operation_of_the_program_does_what_torch_does():
    torch.manual_seed(0)
    kept = {name: Net(*net) for name, net in LAYERS.items()}
    together = Net(lambda x, *nets: [f(x) for f in NETS.values()] + [net(x)[0] for net in nets], *kept.values()).eval()
    program, arrays = numpy_program(traced(together, [torch.randn(3, 4)], 'all of them'))
    run = runtime.compiled(json.loads(json.dumps(program)), arrays)
    assert {step for step, _ in program['steps']} == set(runtime.OPERATIONS)
    for rows in (1, 3, 7):
        x = torch.randn(rows, 4)
        for name, found, expected in zip([*NETS, *LAYERS], run([x.numpy()]), together(x)[0], strict=True):
            assert found.dtype == expected.detach().numpy().dtype, name
            np.testing.assert_allclose(found, expected.detach(), rtol=1e-5, atol=2e-6, err_msg=name)


def test_what_no_graph_does_and_what_numpy_has_not_is_refused_in_a_line(capfd):
    with pytest.raises(ExportError, match=r'a net cannot be exported: .*data-dependent') as refused:
        traced(Net(lambda x: -x if x.sum() > 0 else x), [torch.randn(3, 4)], 'a net')
    assert '\n' not in str(refused.value) and capfd.readouterr() == ('', '')
    with pytest.raises(ExportError, match=r"knows no operation 'avg_pool2d', so there is no .npz"):
        pooled = Net(lambda x: torch.nn.functional.avg_pool2d(x.view(-1, 1, 2, 2), 2))
        numpy_program(traced(pooled, [torch.randn(3, 4)], 'a net'))
    with pytest.raises(ExportError, match='a net cannot be exported: it draws random numbers'):
        traced(Net(lambda x: x + torch.rand_like(x)), [torch.randn(3, 4)], 'a net')
    with pytest.raises(ExportError, match=r'a net cannot be exported: .*batch'):
        traced(Net(lambda x: x.reshape(3, 4) + 1 if len(x) == 3 else x), [torch.randn(3, 4)], 'a net')


# ---- the file
@pytest.fixture(scope='module')
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp('exported')
    model = dict(hidden_dim_list=[64, 64], activation='tanh', head_layer_num=0)
    for ending in ('.npz', '.pt2'):
        export_policy(config('ppo', ENVS['discrete'], **model), None, str(folder / f'policy{ending}'))
    return folder


def test_it_tells_what_it_is_and_nothing_of_the_machine(exported):
    about = runtime.load(str(exported / 'policy.npz')).about
    assert (about['policy'], about['env'], about['acts']) == ('ppo', 'TemptationEnv', 'as in evaluations')
    assert about['inputs'] == [{'name': 'obs', 'shape': [5], 'dtype': 'float32'}]
    assert about['outputs'] == [{'name': 'action', 'shape': [], 'dtype': 'int64'}]
    assert about['action_space'] == 'Discrete(2)' and about['versions']['nervex'] == nervex.__version__
    for ending in ('.npz', '.pt2'):
        with zipfile.ZipFile(exported / f'policy{ending}') as archive:
            content = b''.join(archive.read(name) for name in archive.namelist())
            assert b'.py\x00' not in content and b'nervex/' not in content and str(Path.cwd()).encode() not in content
            assert ending == '.pt2' or all(name.endswith(('.json', '.npy')) for name in archive.namelist())


def test_the_runtime_imports_no_torch_and_is_quick(exported):
    code = (
        'import sys, time; import numpy; t = time.process_time(); import nervex.runtime as r; '
        f'p = r.load({str(exported / "policy.npz")!r}); t = time.process_time() - t; o = numpy.zeros(5); p.act(o); '
        'b = time.process_time(); [p.act(o) for _ in range(2000)]; b = (time.process_time() - b) / 2000; '
        "print(t, b, 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout.split()
    assert float(ran[0]) < 0.1 and float(ran[1]) < 40e-6 and ran[2] == 'False'  # 7 us on a machine with nothing to do


def test_a_damaged_or_foreign_file_is_refused(exported, tmp_path):
    whole = (exported / 'policy.npz').read_bytes()
    weight = whole.index(b'NUMPY') + 300
    bent = whole[:weight] + bytes([whole[weight] ^ 1]) + whole[weight + 1 :]
    for name, content in (('a.npz', whole[:-99]), ('b.npz', b''), ('c.npz', bent)):
        (tmp_path / name).write_bytes(content)
        assert content != whole
        with pytest.raises(CheckpointError, match='is damaged, or no file of nervex export'):
            runtime.load(str(tmp_path / name))
    np.savez(tmp_path / 'own.npz', x=np.zeros(3))
    with pytest.raises(CheckpointError, match='no file of nervex export'):
        runtime.load(tmp_path / 'own.npz')
    with pytest.raises(NothingThereError, match=r'must end in one of .onnx, .pt2, .npz'):
        runtime.load('policy.pkl')
    with pytest.raises(NothingThereError, match='no such file'):
        runtime.load('policy.npz')


def test_observations_of_another_shape_are_refused(exported):
    policy = runtime.load(str(exported / 'policy.npz'))
    with pytest.raises(ValueError, match=r'obs: got the shape \(4,\), must be \(5,\)'):
        policy.act(np.zeros(4))
    for obs in ({'x': 1}, 'north', [[1.0], [2.0, 3.0]]):
        with pytest.raises(ValueError, match=rf'obs: got a {type(obs).__name__} \(.*, must be \(5,\)'):
            policy.act(obs)


def test_a_checkpoint_of_another_ending_is_refused_before_anything_is_done():
    with pytest.raises(ExportError, match=r"got the ending '.tflite', must be one of .onnx, .pt2, .npz"):
        export_policy({}, None, 'policy.tflite')
