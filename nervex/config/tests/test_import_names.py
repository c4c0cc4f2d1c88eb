import sys

import pytest

from nervex.config import ConfigError, compile_config
from nervex.config.tree import set_path


def problem_of(config, path, names):
    set_path(config, path, names)
    with pytest.raises(ConfigError) as caught:
        compile_config(config)
    return caught.value.problems[0]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / 'my_own_package'
    folder.mkdir()
    (folder / '__init__.py').write_text('')
    (folder / 'policies.py').write_text('IMPORTED = True\n')
    (folder / 'broken.py').write_text('x = 1\nx = = 2\n')
    (folder / 'raising.py').write_text('x = 1\nraise ValueError("not today")\n')
    (folder / 'needing.py').write_text('\nimport no_such_module_at_all\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith('my_own_package')]:
        del sys.modules[name]


@pytest.mark.parametrize(
    'path',
    [
        'env.import_names',
        'policy.import_names',
        'policy.model.import_names',
        'import_names',
    ],
)
def test_listed_modules_are_imported_from_every_place(config, package, path):
    for names in (['my_own_package.policies'], 'my_own_package.policies'):
        sys.modules.pop('my_own_package.policies', None)
        set_path(config, path, names)
        compile_config(config)
        assert sys.modules['my_own_package.policies'].IMPORTED


@pytest.mark.parametrize(
    'name, words',
    [
        (
            'my_own_package.policy',
            "'my_own_package' exists but has no 'policy'; did you mean 'my_own_package.policies'?",
        ),
        (
            'my_own_pakage.policies',
            "on PYTHONPATH or installed; did you mean 'my_own_package.policies'?",
        ),
        ('my_own_package.policies.deeper', "'my_own_package.policies' exists, but it is a file and not a package"),
        ('zzz_qqq', "there is no 'zzz_qqq'"),
        ('my_own_package.broken', 'broken.py:2: invalid syntax'),
        ('my_own_package.raising', 'failed: ValueError: not today ('),
        ('my_own_package.needing', "needs 'no_such_module_at_all', which is not installed"),
        (3, 'must be the dotted name of a module'),
        ('', 'must be the dotted name of a module'),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(config, package, name, words):
    problem = problem_of(config, 'policy.import_names', [name])
    assert problem.startswith('policy.import_names: ') and words in problem


def test_errors_inside_a_module_name_file_and_line(config, package):
    assert 'raising.py:2)' in problem_of(config, 'env.import_names', ['my_own_package.raising'])
    assert 'needing.py:2)' in problem_of(config, 'env.import_names', ['my_own_package.needing'])


def test_import_names_must_be_a_list(config):
    assert problem_of(config, 'policy.import_names', 3).startswith('policy.import_names: got 3, must be a list of')


def test_a_registration_in_a_listed_module_is_seen(config, package, monkeypatch):
    (package / 'registering.py').write_text(
        'from nervex.utils import ENV_REGISTRY\n'
        "@ENV_REGISTRY.register('from_my_own_package')\n"
        'class Env:\n    config = dict(size=3)\n'
    )
    config['env'].update(env_type='from_my_own_package', import_names=['my_own_package.registering'])
    assert compile_config(config).env.size == 3
