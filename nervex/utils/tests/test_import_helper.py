import sys

import pytest

from nervex.utils.errors import ExtraMissingError
from nervex.utils.import_helper import import_modules, load_attribute, require, try_import


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / 'some_user_pkg'
    folder.mkdir()
    (folder / '__init__.py').write_text('')
    (folder / 'good.py').write_text('value = 3')
    (folder / 'needy.py').write_text('import surely_not_installed')
    (folder / 'faulty.py').write_text('raise RuntimeError("boom")')
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [m for m in sys.modules if m.startswith('some_user_pkg')]:
        del sys.modules[name]


def test_modules_are_imported(package):
    assert import_modules(['some_user_pkg.good'])[0].value == 3
    assert import_modules('some_user_pkg.good')[0].value == 3
    assert import_modules(None) == [] and import_modules([]) == []


@pytest.mark.parametrize(
    'name, text',
    [
        ('no_such_pkg.policy', "cannot import 'no_such_pkg.policy': there is no 'no_such_pkg'.*PYTHONPATH"),
        ('some_user_pkg.bad', "'some_user_pkg' exists but has no 'bad'"),
        ('some_user_pkg.needy', "was found, but needs 'surely_not_installed'"),
    ],
)
def test_the_missing_part_is_named(package, name, text):
    with pytest.raises(ModuleNotFoundError, match=text):
        import_modules([name])


def test_errors_inside_the_module_pass_through(package):
    with pytest.raises(RuntimeError, match='boom'):
        import_modules(['some_user_pkg.faulty'])


@pytest.mark.parametrize('name', ['', 'a/b.py', '.relative', 3])
def test_what_is_no_module_path_is_refused(name):
    with pytest.raises(ValueError, match='dotted'):
        import_modules([name])


def test_optional_packages(package):
    assert require('json', 'x', 'this').dumps and try_import('json') is not None
    assert try_import('surely_not_installed') is None and try_import('some_user_pkg.bad') is None
    with pytest.raises(ExtraMissingError, match=r'the codec needs .*pip install nervex\[fast\]'):
        require('surely_not_installed', 'nervex[fast]', 'the codec')
    with pytest.raises(ModuleNotFoundError, match='surely'):
        try_import('some_user_pkg.needy')


def test_a_name_in_an_optional_package_tells_which_extra_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'minigrid', None)
    with pytest.raises(ValueError, match=r'minigrid.*; pip install "nervex\[minigrid\]"'):
        load_attribute('minigrid.wrappers:OneHotPartialObsWrapper')
    with pytest.raises(ValueError, match=r"named 'surely_not_installed'$"):
        load_attribute('surely_not_installed:x')
