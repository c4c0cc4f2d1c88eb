from pathlib import Path

import pytest

from nervex import rl_utils
from nervex.rl_utils.operators_page import CHAPTERS, page, public

PAGE = Path(__file__).parents[3] / 'docs' / 'operators.md'
OPERATORS = {
    name: item for modules in CHAPTERS.values() for module in modules
    for name, item in public(__import__(f'nervex.rl_utils.{module}', fromlist=['_']))
}
ENDINGS = ('_error', '_error_continuous', '_loss', '_return', '_returns', '_targets')
OTHERS = ('gae', 'reverse_scan', 'soft_value', 'vtrace_advantage', 'multistep_forward_view')
LEARNING = sorted(name for name in OPERATORS if name.endswith(ENDINGS) or name in OTHERS)


@pytest.mark.skipif(not PAGE.exists(), reason='the page is part of the repository, not of an installed package')
def test_page_is_up_to_date():
    command = 'python -m nervex.rl_utils.operators_page > docs/operators.md'
    assert PAGE.read_text(encoding='utf-8') == page(), f'run {command}'


def test_every_function_of_the_package_is_on_the_page():
    items = {name: getattr(rl_utils, name) for name in rl_utils.__all__}
    functions = {name for name, item in items.items() if callable(item) and not hasattr(item, '_fields')}
    other_spellings = {'get_epsilon_greedy_fn', 'ppo_error_continous'}
    assert functions - other_spellings <= set(OPERATORS)


@pytest.mark.parametrize('name', LEARNING)
def test_formula_paper_and_shapes_are_documented(name):
    doc = ' '.join(OPERATORS[name].__doc__.split())
    assert ':math:' in doc.split('Arguments:')[0].split('Shapes:')[0], 'no formula in the overview'
    assert any(source in doc for source in ('arXiv:', 'doi:', 'Sutton and Barto', 'CMU-CS')), 'no paper'
    assert 'Shapes:' in doc
