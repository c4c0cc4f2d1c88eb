import os

import pytest
from easydict import EasyDict

from nervex.config import Config, ConfigError, builtin_configs, read_config, save_config


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding='utf-8')
    return str(path)


def error_of(path):
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


# ---- .py ----
def test_a_python_config_runs_in_its_own_namespace(tmp_path):
    path = written(
        tmp_path,
        'a_config.py',
        'lr = 1e-3\n'
        "if __name__ == '__main__':\n    raise SystemExit('not run')\n"
        'main_config = dict(policy=dict(lr=lr * 2, file=__file__))\n',
    )
    config = read_config(path)
    assert isinstance(config, EasyDict) and config.policy.lr == 2e-3 and config.policy.file == path
    assert 'lr' not in globals()
    config.policy.lr = 0
    assert read_config(path).policy.lr == 2e-3


def test_a_second_dict_of_names_is_merged(tmp_path):
    text = "main_config = dict(policy=dict(lr=1))\ncreate_config = dict(policy=dict(type='dqn'))"
    path = written(tmp_path, 'c.py', text)
    assert read_config(path) == {'policy': {'lr': 1, 'type': 'dqn'}}


@pytest.mark.parametrize(
    'text, where, words',
    [
        ('main_config = dict(\n  a=1,\n  b= =2\n)', '3', 'does not parse'),
        ('a = 1\nmain_confg = {}\n', '2', "there is 'main_confg'; write main_config = main_confg"),
        ('import os\n\ncartpole_dqn_config: dict = {}\n', '3', "there is 'cartpole_dqn_config'"),
        ('a = 1\nb = 2\n', '2', 'no main_config'),
        ('a = 1\n\nmain_config = a.b\n', '3', "AttributeError: 'int' object has no attribute 'b'"),
        ('def f():\n    return missing\n\n\nmain_config = f()\n', '2', 'NameError'),
        ('import no_such_module_at_all\n', '1', "No module named 'no_such_module_at_all'"),
    ],
)
def test_a_broken_python_config_names_file_and_line(tmp_path, text, where, words):
    path = written(tmp_path, 'broken.py', text)
    problem = error_of(path)
    assert problem.startswith(f'{path}:{where}:') and words in problem


def test_main_config_must_be_a_dict(tmp_path):
    assert 'main_config is a list' in error_of(written(tmp_path, 'l.py', 'main_config = []'))


def test_config_class_holds_the_names_of_a_file(tmp_path):
    path = written(tmp_path, 'a.py', 'x = 1\nmain_config = dict(a=x)\n')
    config = Config.file_to_dict(path)
    assert config.cfg_dict['main_config'] == {'a': 1} and config.cfg_dict['x'] == 1 and config['x'] == 1
    assert not any(key.startswith('__') for key in config.cfg_dict)
    assert config.text.startswith('x = 1') and config.filename == path
    with pytest.raises(ConfigError, match="has no 'y'"):
        config['y']
    assert Config.file_to_dict(written(tmp_path, 'b.yaml', 'env: {a: 1}')).cfg_dict['main_config'] == {'env': {'a': 1}}
    assert Config(dict(a=1)).cfg_dict == {'a': 1}
    with pytest.raises(TypeError):
        Config([1])


# ---- YAML ----
@pytest.mark.parametrize(
    'text, value',
    [
        ('1e-4', 1e-4),
        ('1E5', 1e5),
        ('3.e-4', 3e-4),
        ('.5e1', 5.0),
        ('-2e+3', -2e3),
        ('1.0e-4', 1e-4),
        ('1e', '1e'),
        ('e5', 'e5'),
        ('"1e-4"', '1e-4'),
        ('12', 12),
        ('0.5', 0.5),
        ('.inf', float('inf')),
        ('inf', 'inf'),
        ('true', True),
        ('null', None),
        ('[1e-3, a]', [1e-3, 'a']),
        ('0x10', 16),
        ('1_000', 1000),
        ('2021-02-03x', '2021-02-03x'),
    ],
)
def test_yaml_scalars(tmp_path, text, value):
    read = read_config(written(tmp_path, 'a.yaml', f'policy:\n  x: {text}\n')).policy.x
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    'text, where, words',
    [
        ('env:\n  a: [1, 2\npolicy: {}\n', '3:', 'not valid YAML'),
        ('env: {a: 1}\npolicy:\n\tb: 2\n', '3:1:', 'not valid YAML'),
        ('env:\n  a: 1\n  b: 2\n  a: 3\n', '4:3:', "key 'a' is given twice"),
        ('env: !!python/object/apply:os.system ["true"]\n', '1:6:', 'could not determine a constructor'),
    ],
)
def test_broken_yaml_names_file_line_and_column(tmp_path, text, where, words):
    path = written(tmp_path, 'broken.yaml', text)
    problem = error_of(path)
    assert problem.startswith(f'{path}:{where}') and words in problem


@pytest.mark.parametrize(
    'text, words',
    [
        ('', 'holds nothing'),
        ('- a\n- b\n', 'holds a list'),
        ('just text', 'holds a str'),
    ],
)
def test_yaml_must_hold_sections(tmp_path, text, words):
    assert words in error_of(written(tmp_path, 'a.yml', text))


def test_yaml_merge_keys_may_be_given_again(tmp_path):
    path = written(tmp_path, 'a.yaml', 'base: &b {x: 1, y: 2}\nenv:\n  <<: *b\n  y: 3\n')
    assert read_config(path).env == {'x': 1, 'y': 3}


def test_yaml_may_wrap_its_sections_in_main_config(tmp_path):
    assert read_config(written(tmp_path, 'a.yaml', 'main_config:\n  env: {x: 1}\n')) == {'env': {'x': 1}}


# ---- which file ----
def test_files_that_cannot_be_read(tmp_path):
    written(tmp_path, 'cartpole_config.py', 'main_config = {}')
    problem = error_of(str(tmp_path / 'cartpol_config.py'))
    assert 'no such file' in problem and f"did you mean '{tmp_path / 'cartpole_config.py'}'?" in problem
    assert 'does not exist' in error_of(str(tmp_path / 'nowhere' / 'a.py'))
    assert 'is a folder' in error_of(str(tmp_path))
    assert 'ends in .py, .yaml, .yml' in error_of(written(tmp_path, 'a.json', '{}'))
    (tmp_path / 'bytes.py').write_bytes(b'\xff\xfe\x00')
    assert 'not a UTF-8 text file' in error_of(str(tmp_path / 'bytes.py'))


def test_a_built_in_config_is_found_by_name_without_importing_its_package(tmp_path, monkeypatch):
    package = tmp_path / 'app_zoo'
    for folder, name in (
        ('cart/entry', 'cart_dqn_default_config.py'),
        ('cart/entry', 'cart_ppo_config.py'),
        ('cart/envs', 'wrong_place_config.py'),
        ('cart/entry', 'helper.py'),
    ):
        os.makedirs(package / folder, exist_ok=True)
        written(package / folder, name, 'main_config = dict(env=dict(x=1))')
    written(package, '__init__.py', 'raise RuntimeError("imported")')
    monkeypatch.setattr('importlib.util.find_spec', lambda name: _Spec([str(package)]))
    assert list(builtin_configs()) == ['cart_dqn', 'cart_ppo']
    assert read_config('cart_dqn') == {'env': {'x': 1}}
    problem = error_of('cart_dqm')
    assert problem.startswith("unknown config 'cart_dqm'; did you mean 'cart_dqn'?") and 'cart_ppo' in problem


class _Spec:
    def __init__(self, locations):
        self.submodule_search_locations = locations


def test_a_folder_of_a_run_does_not_hide_the_built_in_config_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'cartpole_dqn').mkdir()
    assert read_config('cartpole_dqn').policy.policy_type == 'dqn'


def test_every_installed_config_has_a_name_of_its_own():
    names = builtin_configs()
    assert 'cartpole_dqn' in names
    files = [file for file in names.values() if file.endswith('_config.py')]
    assert len(files) == len(names)


# ---- saving ----
def test_saved_configs_read_back_equal(tmp_path):
    config = dict(
        policy=dict(
            lr=1e-5,
            big=1e22,
            inf=float('inf'),
            text='1e-4',
            yes='yes',
            none=None,
            flag=True,
            empty={},
            nothing=[],
            unicode='größe',
            multi='a\nb: c',
        ),
        env=dict(sizes=[[1, 2], [3]], names=['a', '#b', ': c'], nested=dict(deep=dict(er=-0.0))),
    )
    path = tmp_path / 'deep' / 'folder' / 'config.yaml'
    save_config(EasyDict(config), path)
    assert read_config(path) == config
    assert os.listdir(path.parent) == ['config.yaml']  # no temporary file is left


def test_saving_turns_python_objects_into_what_yaml_holds(tmp_path):
    import numpy as np

    shared = [1]
    config = dict(a=(1, 2), b=np.float32(0.5), c=np.arange(3), d=Config, e=len, f=shared, g=shared)
    save_config(config, tmp_path / 'c.yaml')
    assert read_config(tmp_path / 'c.yaml') == dict(
        a=[1, 2], b=0.5, c=[0, 1, 2], d='nervex.config.config:Config', e='builtins:len', f=[1], g=[1]
    )
    assert '&' not in (tmp_path / 'c.yaml').read_text()


def test_yaml_words_are_words_and_only_true_and_false_are_truth_values(tmp_path):
    path = tmp_path / 'c.yaml'
    path.write_text('a: {graph: off, mode: on, other: No, yes: 1, t: true, f: False}\n', encoding='utf-8')
    expected = {'a': {'graph': 'off', 'mode': 'on', 'other': 'No', 'yes': 1, 't': True, 'f': False}}
    assert read_config(str(path)) == expected
