"""The ten kinds of mistakes, all at once and each alone, and what a resolved config is."""

import copy

import pytest
from easydict import EasyDict

from nervex.config import ConfigError, compile_config, read_config, save_config
from nervex.config.tree import set_path


def problems_of(config, **kwargs):
    with pytest.raises(ConfigError) as caught:
        compile_config(config, **kwargs)
    return caught.value.problems


def one_problem(config, **kwargs):
    problems = problems_of(config, **kwargs)
    assert len(problems) == 1, problems
    return problems[0]


def test_defaults_come_below_the_config_and_the_config_below_overrides(config):
    config['policy']['learn']['learning_rate'] = 0.1
    resolved = compile_config(config, overrides=['policy.learn.batch_size=16'])
    assert isinstance(resolved, EasyDict)
    assert resolved.policy.learn.weight_decay == 0.0  # of the base class
    assert resolved.policy.learn.train_step == 3  # of the class
    assert resolved.policy.learn.learning_rate == 0.1  # of the config
    assert resolved.policy.learn.batch_size == 16  # of the command line
    assert resolved.env.manager.step_timeout == 60.0 and resolved.env.frame_stack == 4
    assert resolved.replay_buffer.buffer_name == ['agent'] and resolved.replay_buffer.agent.alpha == 0.6
    assert resolved.evaluator.n_episode == 5 and resolved.learner.load_path == ''
    assert resolved.commander.max_env_step == 10_000_000 and resolved.exp_name == ''


def test_the_callers_object_is_not_changed_and_works_twice(config):
    for made in (config, EasyDict(copy.deepcopy(config))):
        before = copy.deepcopy(made)
        first = compile_config(made, overrides=['actor.n_sample=4'])
        first.policy.learn.algo.nstep = 99
        first.policy.model.dueling = None
        assert made == before
        assert compile_config(made).policy.learn.algo.nstep == 1


def test_a_resolved_config_compiles_to_itself_also_from_a_file(config, tmp_path):
    resolved = compile_config(config)
    assert compile_config(resolved) == resolved
    save_config(resolved, tmp_path / 'resolved.yaml')
    assert compile_config(str(tmp_path / 'resolved.yaml')) == resolved
    assert read_config(tmp_path / 'resolved.yaml') == resolved


def test_only_env_and_policy_must_be_there(config):
    small = dict(env=dict(env_type='fake'), policy=dict(policy_type='fake'), actor=dict(n_sample=8))
    assert compile_config(small).replay_buffer.buffer_name == ['armor']
    for section in ('env', 'policy'):
        left = {key: value for key, value in small.items() if key != section}
        assert one_problem(left).startswith(f'{section}: missing section')


@pytest.mark.parametrize(
    'path, near',
    [
        ('evaluatr', 'evaluator'),
        ('env.actr_env_num', 'actor_env_num'),
        ('env.norm_obs.use_nrm', 'use_norm'),
        ('env.manager.step_timout', 'step_timeout'),
        ('policy.on_polcy', 'on_policy'),
        ('policy.learn.learnig_rate', 'learning_rate'),
        ('policy.learn.algo.discont_factor', 'discount_factor'),
        ('policy.command.eps.strat', 'start'),
        ('policy.model.duelling', 'dueling'),
        ('policy.nstp', 'policy.learn.algo.nstep'),
        ('replay_buffer.agent.meta_maxln', 'meta_maxlen'),
        ('replay_buffer.agent.monitor.log_frq', 'log_freq'),
        ('actor.n_sampel', 'n_sample'),
        ('evaluator.stop_vl', 'stop_val'),
        ('learner.load_pth', 'load_path'),
        ('commander.max_env_stp', 'max_env_step'),
    ],
)
def test_a_misspelt_key_at_any_level_names_the_nearest(config, path, near):
    set_path(config, path, 3)
    problem = one_problem(config)
    assert problem.startswith(f'{path}: unknown setting; did you mean ') and 'got 3' in problem
    assert near.rpartition('.')[2] in problem.split('?')[0]


def test_a_key_like_nothing_known_lists_what_is_accepted(config):
    config['evaluator']['xyzzy'] = 1
    assert one_problem(config).endswith('BaseSerialEvaluator accepts here: eval_freq, n_episode, stop_val')


@pytest.mark.parametrize(
    'path, value, rule',
    [
        ('policy.learn.batch_size', 'abc', 'must be an int >= 1'),
        ('policy.learn.batch_size', 64.5, 'must be an int >= 1'),
        ('policy.learn.batch_size', True, 'must be an int >= 1'),
        ('policy.learn.learning_rate', '3e-4', 'must be a finite number > 0; write it without quotes'),
        ('env.frame_stack', 5.0, 'must be an int; write 5'),
        ('policy.learn.learning_rate', None, 'must be a finite number > 0'),
        ('policy.on_policy', 1, 'must be a bool'),
        ('policy.on_policy', 'false', 'write it without quotes'),
        ('policy.learn', [1], 'must be a dict'),
        ('policy.learn', None, 'write {} for an empty one'),
        ('policy.model', 3, 'must be a dict'),
        ('policy.model.embedding_dim', 'wide', 'must be an int'),
        ('learner.load_path', 3, 'must be a str'),
        ('env.actor_env_num', 2.0, 'must be an int in [1, 65536]'),
        ('actor.traj_print_freq', 1e3, 'write 1000'),
        ('replay_buffer.buffer_name', 3, 'must be a list of names'),
        ('actor', 'fast', 'must be a dict'),
        ('exp_name', 3, 'must be a str'),
        ('seed', 'zero', 'must be an int >= 0 or None'),
    ],
)
def test_a_wrong_type_names_value_and_rule(config, path, value, rule):
    set_path(config, path, value)
    problem = problems_of(config)[0]
    assert problem.startswith(f'{path}: got {value!r}') and rule in problem


@pytest.mark.parametrize(
    'path, value, rule',
    [
        ('policy.learn.batch_size', 0, '>= 1'),
        ('policy.learn.learning_rate', -1e-3, '> 0'),
        ('policy.learn.learning_rate', float('nan'), 'must be a finite number'),
        ('policy.learn.algo.discount_factor', 1.5, 'in [-1, 1]'),
        ('policy.learn.algo.nstep', 0, 'in [1, 10000]'),
        ('policy.learn.target_theta', 2, 'in [0, 1]'),
        ('policy.command.eps.start', 1.2, 'in [0, 1]'),
        ('policy.command.eps.type', 'exponential', "one of 'exp', 'linear'"),
        ('policy.collect.traj_len', 'infinite', "'inf'"),
        ('env.actor_env_num', 0, 'in [1, 65536]'),
        ('env.manager.step_timeout', -1, '> 0'),
        ('env.manager.context', 'spwan', "did you mean 'spawn'?"),
        ('replay_buffer.agent.max_reuse', 0, '> 0'),
        ('replay_buffer.agent.type', 'replya', "did you mean 'replay'?"),
        ('actor.n_sample', 0, '>= 1'),
        ('evaluator.eval_freq', -5, '>= 1'),
    ],
)
def test_a_value_out_of_range_names_value_and_rule(config, path, value, rule):
    set_path(config, path, value)
    problem = problems_of(config)[0]
    assert problem.startswith(f'{path}: got {value!r}') and rule in problem


@pytest.mark.parametrize(
    'path, value, near',
    [
        ('policy.policy_type', 'fke', 'fake'),
        ('env.env_type', 'fakee', 'fake'),
        ('env.env_manager_type', 'bse', 'base'),
        ('policy.model.model_type', 'fake_nt', 'fake_net'),
    ],
)
def test_an_unknown_registered_name_suggests_the_nearest(config, path, value, near):
    set_path(config, path, value)
    problem = one_problem(config)
    assert problem.startswith(f'{path}: unknown ') and f"did you mean '{near}'?" in problem


def test_missing_names_list_the_known_ones(config):
    del config['env']['env_type'], config['policy']['policy_type']
    problems = problems_of(config)
    assert problems[0].startswith('env.env_type: missing; must be one of:') and 'fake' in problems[0]
    assert problems[1].startswith('policy.policy_type: missing')


def test_a_name_whose_class_cannot_be_imported_says_why(config, monkeypatch):
    from nervex.utils import ENV_MANAGER_REGISTRY

    monkeypatch.setitem(ENV_MANAGER_REGISTRY._entries, 'lost', 'nervex.no_such_module:Manager')
    config['env']['env_manager_type'] = 'lost'
    assert "'lost' cannot be loaded: No module named 'nervex.no_such_module'" in one_problem(config)


@pytest.mark.parametrize(
    'path, value',
    [
        ('policy.learn.batch_size', 1001),
        ('policy.learn.init_data_count', 1001),
        ('replay_buffer.agent.replay_start_size', 1001),
    ],
)
def test_more_rows_than_the_buffer_holds(config, path, value):
    set_path(config, path, value)
    problem = one_problem(config)
    assert problem.startswith(f'{path}: got 1001, must be at most')
    assert 'replay_buffer.agent.meta_maxlen = 1000' in problem
    set_path(config, path, 1000)
    compile_config(config)


def test_all_problems_of_all_sections_come_at_once_and_in_the_order_of_the_sections(config):
    changes = {
        'polcy': {},
        'env.env_manager_type': 'bse',
        'env.frame_stak': 1,
        'policy.learn.batch_size': 'abc',
        'policy.learn.algo.nstp': 1,
        'policy.model.duelling': 1,
        'replay_buffer.agent.meta_maxlen': -1,
        'actor.n_episode': 2,
        'evaluator.stop_vall': 1,
        'import_names': ['nervex.no_such'],
    }
    for path, value in changes.items():
        set_path(config, path, value)
    problems = problems_of(config, overrides=['learner.load_pat=x', 'nonsense'])
    for path in [
        'nonsense',
        'polcy',
        'import_names',
        'env.env_manager_type',
        'env.frame_stak',
        'policy.learn.batch_size',
        'policy.learn.algo.nstp',
        'policy.model.duelling',
        'replay_buffer.agent.meta_maxlen',
        'evaluator.stop_vall',
        'learner.load_pat',
        'actor.n_sample',
    ]:
        assert sum(path in problem.split(':')[0] + problem[:40] for problem in problems) == 1, (path, problems)
    assert len(problems) == 12


def test_the_error_is_one_value_error_with_a_line_a_problem(config):
    config['evaluator'].update(a=1, b=2)
    with pytest.raises(ValueError) as caught:
        compile_config(config)
    assert len(str(caught.value).splitlines()) == 2


def test_not_a_config_at_all():
    with pytest.raises(TypeError, match='must be a dict'):
        compile_config(3)
    with pytest.raises(ConfigError, match='key 3 is a int'):
        compile_config({3: {}, 'env': {}, 'policy': {}})


def test_empty_sections_of_yaml_count_as_empty(config):
    config['commander'] = None
    assert compile_config(config).commander.max_env_step == 10_000_000


def test_a_class_without_declarations_of_its_own_keeps_its_section_open(config, fakes, caplog):
    own = type('OwnPolicy', (fakes['FakePolicyBase'],), {})
    learn = dict(batch_size=16, my_weight=0.5, algo=dict(nstep=3, tau=1))
    config['policy'] = dict(my_flag=1, learn=learn, command=dict(eps=1))
    resolved = compile_config(config, policy=own)
    assert resolved.policy.my_flag == 1 and resolved.policy.learn.my_weight == 0.5
    assert resolved.policy.learn.algo == dict(nstep=3, tau=1) and resolved.policy.learn.train_step == 1
    assert resolved.policy.collect.algo.nstep == 3
    config['policy']['learn']['learnig_rate'] = 0.1
    assert compile_config(config, policy=own).policy.learn.learnig_rate == 0.1
    assert "did you mean 'learning_rate'" in caplog.text  # accepted, and not in silence
    config['policy']['learn']['batch_size'] = 'abc'  # what is declared is still checked
    assert one_problem(config, policy=own).startswith("policy.learn.batch_size: got 'abc'")


def test_a_class_with_declarations_accepts_these_and_its_bases(config, fakes):
    own = type('OwnPolicy', (fakes['FakePolicy'],), dict(config=dict(learn=dict(my_weight=0.5))))
    config['policy']['learn'] = dict(my_weight=1, train_step=7)
    resolved = compile_config(config, policy=own)
    assert (resolved.policy.learn.my_weight, resolved.policy.learn.train_step) == (1, 7)
    config['policy']['learn']['my_wieght'] = 2
    assert "did you mean 'my_weight'?" in one_problem(config, policy=own)


def test_an_undeclared_class_keeps_its_section_wholly_open(config):
    config['policy'] = dict(anything=dict(goes=[1]))
    config['env'].update(whatever=3)
    resolved = compile_config(config, policy=type('P', (), {}), env=type('E', (), {}))
    assert resolved.policy.anything.goes == [1] and resolved.env.whatever == 3


def test_sections_that_the_caller_replaces_may_be_missing(fakes):
    resolved = compile_config(dict(actor=dict(n_sample=4)), policy=fakes['FakePolicy'], env=fakes['FakeEnv'])
    assert resolved.policy.learn.train_step == 3 and resolved.env.frame_stack == 4
    setting = (fakes['FakeEnv'], [{}, {}], [{}])
    assert compile_config(dict(actor=dict(n_sample=4)), policy='fake', env=setting).env.actor_env_num == 2


def test_another_type_replaces_a_nested_dict_and_must_be_complete(config):
    config['policy']['command'] = dict(eps=dict(type='linear', start=0.5, end=0.2, decay=10))
    assert compile_config(config).policy.command.eps == dict(type='linear', start=0.5, end=0.2, decay=10)
    config['policy']['command'] = dict(eps=dict(type='linear', start=0.5))
    problems = problems_of(config)
    assert [p.split(':')[0] for p in problems] == ['policy.command.eps.end', 'policy.command.eps.decay']
    config['policy']['command'] = dict(eps=dict(type='exp', start=0.5))  # the same type merges
    assert compile_config(config).policy.command.eps.decay == 10000


def test_lists_replace_and_none_is_a_value(config):
    config['policy']['model']['hidden_dim_list'] = [1]
    config['evaluator']['stop_val'] = None
    resolved = compile_config(config, overrides=['policy.model.hidden_dim_list=[2, 3]'])
    assert resolved.policy.model.hidden_dim_list == [2, 3] and resolved.evaluator.stop_val is None


def test_an_empty_nested_declaration_is_open_unless_its_rule_is_empty_too(config):
    config['policy']['collect'] = dict(algo=dict(nstep=1))
    config['env']['norm_obs'] = dict(use_norm=True)
    compile_config(config)
    config['policy']['eval'] = dict(n=3)
    assert one_problem(config).startswith('policy.eval.n: unknown setting')


def test_numpy_numbers_become_plain_ones(config):
    import numpy as np

    config['policy']['learn'].update(batch_size=np.int64(8), learning_rate=np.float32(0.5))
    learn = compile_config(config).policy.learn
    assert type(learn.batch_size) is int and type(learn.learning_rate) is float
