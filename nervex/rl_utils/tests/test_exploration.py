import math

import pytest

from nervex.rl_utils import epsilon_greedy, get_epsilon_greedy_fn


def test_exponential_by_hand():
    schedule = epsilon_greedy(0.95, 0.1, 10000)
    assert schedule(0) == 0.95 and schedule(10000) == pytest.approx(0.85 / math.e + 0.1)


def test_linear_by_hand():
    schedule = get_epsilon_greedy_fn(1.0, 0.2, 10, 'linear')
    assert [schedule(x) for x in (0, 5, 10, 99)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


@pytest.mark.parametrize('arguments', [(1.0, 0.1, 10, 'cosine'), (0.1, 0.9, 10), (1.0, 0.1, 0)])
def test_nonsense_is_refused(arguments):
    with pytest.raises(ValueError, match='epsilon_greedy'):
        epsilon_greedy(*arguments)
