"""The page of all operators is made of their docstrings, and up to date."""

import importlib.util
from pathlib import Path

import pytest

from nervex import rl_utils

DOCS = Path(__file__).parents[1] / 'docs'
PAGE = DOCS / 'operators.md'
_spec = importlib.util.spec_from_file_location('operators_page', DOCS / 'operators_page.py')
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
CHAPTERS, page, public = _module.CHAPTERS, _module.page, _module.public
OPERATORS = {
    name: item
    for modules in CHAPTERS.values()
    for module in modules
    for name, item in public(__import__(f'nervex.rl_utils.{module}', fromlist=['_']))
}
WITHOUT_FORMULA = {'Adder', 'BaseNoise', 'TrajWindow', 'create_noise_generator', 'flatten_time'}
SOURCES = ('arXiv:', 'doi:', 'Sutton and Barto', 'CMU-CS', 'Cover and Thomas', ':func:')


def test_page_is_up_to_date():
    command = 'python docs/operators_page.py > docs/operators.md'
    assert PAGE.read_text(encoding='utf-8') == page(), f'run {command}'


def test_every_function_of_the_package_is_on_the_page():
    items = {name: getattr(rl_utils, name) for name in rl_utils.__all__}
    functions = {name for name, item in items.items() if callable(item) and not hasattr(item, '_fields')}
    other_spellings = {'get_epsilon_greedy_fn', 'ppo_error_continous'}
    assert functions - other_spellings <= set(OPERATORS)


def test_records_are_listed_with_their_fields_and_other_names():
    text = page()
    assert '`Data` is' not in text
    assert '`data` is `gae_data(value, reward, done=None, truncated=None, next_value=None)`.' in text
    loss, info = 'ppo_loss(policy_loss, value_loss, entropy_loss)', 'ppo_info(approx_kl, clipfrac)'
    assert f'the result is `{loss}` and `{info}`.' in text
    assert 'Also called `get_epsilon_greedy_fn`.' in text and 'Also called `ppo_error_continous`.' in text
    records = [name for name in rl_utils.__all__ if hasattr(getattr(rl_utils, name), '_fields')]
    assert [name for name in records if f'`{name}(' not in text] == []


@pytest.mark.parametrize('name', sorted(OPERATORS.keys() - WITHOUT_FORMULA))
def test_formula_paper_and_shapes_are_documented(name):
    doc = ' '.join(OPERATORS[name].__doc__.split())
    overview = doc.split('Arguments:')[0].split('Shapes:')[0]
    assert ':math:' in overview or overview.startswith('Overview: :func:'), 'no formula in the overview'
    assert any(source in doc for source in SOURCES), 'no paper'
    assert 'Shapes:' in doc
