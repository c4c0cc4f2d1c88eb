"""Names that packages offer without importing where they live."""

import importlib
import subprocess
import sys

import pytest

PACKAGES = [
    'nervex.data',
    'nervex.data.structure',
    'nervex.model',
    'nervex.model.common',
    'nervex.model.common_arch',
    'nervex.torch_utils',
    'nervex.utils',
]


@pytest.mark.parametrize('package', PACKAGES)
def test_every_offered_name_exists(package):
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__)) > 5
    for name in module.__all__:
        assert getattr(module, name) is not None and name in dir(module)


@pytest.mark.parametrize('package', PACKAGES)
def test_unknown_name_is_an_attribute_error(package):
    module = importlib.import_module(package)
    assert not hasattr(module, 'nothing_of_this_name')
    with pytest.raises(ImportError, match='nothing_of_this_name'):
        exec(f'from {package} import nothing_of_this_name', {})


def test_a_name_is_imported_once_and_is_the_one_of_its_module():
    from nervex import utils
    from nervex.utils.time_helper import EasyTimer

    assert utils.EasyTimer is EasyTimer and vars(utils)['EasyTimer'] is EasyTimer


def test_a_name_may_be_another_one_where_it_lives():
    from nervex.data.structure import NaiveReplayBuffer, PrioritizedBuffer, PrioritizedReplayBuffer, ReplayBuffer
    from nervex.model import GaussianHead, ReparameterizationHead

    assert NaiveReplayBuffer is ReplayBuffer and PrioritizedBuffer is PrioritizedReplayBuffer
    assert ReparameterizationHead is GaussianHead


def test_importing_utils_does_not_import_torch():
    code = 'import sys, nervex.utils; sys.exit("torch" in sys.modules or "tensorboardX" in sys.modules)'
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)
