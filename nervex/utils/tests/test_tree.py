"""Nested containers are walked in one way."""

from collections import namedtuple

import numpy as np
import pytest
import torch
from easydict import EasyDict

from nervex.utils import tree

Pair = namedtuple('Pair', ['a', 'b'])


def test_map_keeps_containers_and_makes_plain_dicts_of_other_mappings():
    got = tree.map(lambda x: x * 2, {'x': 1, 'y': [2, (3, Pair(4, 5))], 'z': EasyDict(w=6)})
    assert got == {'x': 2, 'y': [4, (6, Pair(8, 10))], 'z': {'w': 12}}
    assert type(got['z']) is dict and type(got['y'][1][1]) is Pair


def test_map_of_several_trees_meets_leaves_at_the_same_place():
    assert tree.map(lambda a, b: a - b, {'x': [5, 6], 'y': 7}, {'y': 1, 'x': [2, 2]}) == {'x': [3, 4], 'y': 6}


def test_zip_answers_paths_and_labels():
    found = list(tree.zip({'obs': {'image': 1, 'goal': [2]}}, {'obs': {'image': 3, 'goal': [4]}}))
    assert found == [(('obs', 'image'), 1, 3), (('obs', 'goal', 0), 2, 4)]
    assert tree.label(found[1][0]) == 'obs.goal.0'
    assert tree.leaves({'a': [], 'b': None}) == [None]


def test_a_different_structure_is_named():
    with pytest.raises(tree.TreeError, match=r"expected the parts \['a', 'b'\], got \['a', 'c'\]"):
        tree.map(lambda x, y: x, {'a': 1, 'b': 2}, {'a': 1, 'c': 2})
    with pytest.raises(tree.TreeError, match=r'x: .*got a leaf \(int\)'):
        list(tree.zip({'x': {'a': 1}}, {'x': 3}))


def test_rows_are_read_and_written_in_place():
    store = {'obs': np.zeros((3, 2)), 'hidden': [torch.zeros(3, 1)]}
    tree.write(store, 1, {'obs': [1.0, 2.0], 'hidden': [7.0]})
    row = tree.index(store, 1)
    assert row['obs'].tolist() == [1.0, 2.0] and row['hidden'][0].tolist() == [7.0]
    assert store['obs'][0].tolist() == [0.0, 0.0]


def test_stack_and_cat_keep_dtypes_and_kinds():
    rows = [{'a': np.uint8(k), 'b': torch.full((2,), k)} for k in range(3)]
    stacked = tree.stack(rows)
    assert stacked['a'].dtype == np.uint8 and stacked['b'].shape == (3, 2)
    joined = tree.cat([stacked, stacked])
    assert joined['a'].tolist() == [0, 1, 2, 0, 1, 2] and joined['b'].shape == (6, 2)
    assert tree.nbytes(joined) == 6 + 6 * 2 * 8


def test_a_class_joins_by_registering():
    class Bag:
        def __init__(self, parts: dict) -> None:
            self.parts = parts

    tree.register(Bag, lambda bag: bag.parts, Bag)
    got = tree.map(lambda x: x + 1, {'bag': Bag({'k': 1})})
    assert isinstance(got['bag'], Bag) and got['bag'].parts == {'k': 2}


def test_a_tree_of_mappings_comes_back_from_its_paths():
    leaves = {'a': 1, 'b': {'c': 2, 'd': {'e': 3}}}
    assert tree.from_paths(tree.zip(leaves)) == leaves and tree.from_paths([]) == {}


def test_map_with_path_tells_where_a_leaf_is():
    found = tree.map_with_path(lambda path, a, b: f'{tree.label(path)}={a + b}', {'x': [1, (2,)]}, {'x': [3, (4,)]})
    assert found == {'x': ['x.0=4', ('x.1.0=6',)]}


def test_unstack_is_the_inverse_of_stack():
    rows = [{'a': np.arange(2) + k, 'b': (torch.tensor([k]), float(k))} for k in range(3)]
    stacked = tree.stack(rows)
    back = tree.unstack(stacked, 3)
    assert [row['a'].tolist() for row in back] == [[0, 1], [1, 2], [2, 3]]
    assert [(row['b'][0].item(), row['b'][1]) for row in back] == [(k, k) for k in range(3)]
    assert isinstance(back[0]['b'], tuple) and tree.unstack({}, 0) == []
