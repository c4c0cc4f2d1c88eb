"""Agents of different sizes in one array."""

import numpy as np
import pytest

from nervex.envs.common import legal_mask, padded


def test_shorter_rows_are_filled():
    rows = [np.array([1.0, 2.0]), np.array([3.0])]
    assert padded(rows).tolist() == [[1, 2], [3, 0]] and padded(rows).dtype == np.float32
    assert padded(rows, 3, fill=-1).tolist() == [[1, 2, -1], [3, -1, -1]]


def test_a_row_longer_than_the_array_is_refused():
    with pytest.raises(ValueError):
        padded([np.ones(3)], 2)


def test_a_mask_allows_each_agent_its_own_actions():
    assert legal_mask([1, 3]).tolist() == [[1, 0, 0], [1, 1, 1]]
