from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from torch import nn

from nervex.torch_utils.data_helper import (
    CudaFetcher,
    LogDict,
    build_log_buffer,
    get_tensor_data,
    same_shape,
    tensor_to_list,
    to_device,
    to_dtype,
    to_list,
    to_ndarray,
    to_tensor,
)

Pair = namedtuple('Pair', ['a', 'b'])


def test_to_device_goes_through_all_containers_and_keeps_their_kinds():
    item = {'t': torch.ones(2), 'p': Pair(torch.ones(1), 'x'), 'l': [torch.zeros(1), None], 'o': OrderedDict(k=(1,))}
    moved = to_device(item, 'meta', ignore_keys=['o'])
    assert moved['t'].device.type == moved['p'].a.device.type == moved['l'][0].device.type == 'meta'
    assert type(moved['p']) is Pair and moved['p'].b == 'x' and moved['l'][1] is None and moved['o'] is item['o']
    assert to_device(nn.Linear(1, 1), 'meta').weight.device.type == 'meta'


def test_to_dtype_converts_tensors_only():
    out = to_dtype({'x': torch.ones(1, dtype=torch.uint8), 'y': 3}, torch.float32)
    assert out['x'].dtype == torch.float32 and out['y'] == 3


def test_to_tensor_of_everything():
    out = to_tensor(
        {
            'array': np.arange(2, dtype=np.uint8),
            'numbers': [1.0, 2.0],
            'rows': [np.zeros(2), np.ones(2)],
            'one': True,
            'none': None,
            'pair': Pair(1, 2.0),
            'scalar': np.float32(3.0),
            'mixed': [1, [2, 3]],
            'name': 'x',
            'empty': [],
        }
    )
    assert (
        out['array'].dtype == torch.uint8 and out['numbers'].tolist() == [1.0, 2.0] and out['one'].dtype == torch.bool
    )
    assert isinstance(out['rows'], list) and out['rows'][1].tolist() == [1.0, 1.0] and out['none'] is None
    assert out['pair'].b.dtype == torch.float32 and out['scalar'].shape == () and out['name'] == 'x'
    assert out['empty'] == [] and out['mixed'][0].item() == 1 and out['mixed'][1].tolist() == [2, 3]
    assert to_tensor(np.arange(3), torch.float32).dtype == torch.float32
    assert to_tensor(torch.ones(1), torch.int64).dtype == torch.int64


def test_to_tensor_takes_arrays_with_negative_strides_and_no_dimension():
    assert to_tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0] and to_tensor(np.array(5.0)).shape == ()


def test_to_ndarray_and_lists():
    item = {'t': torch.ones(2, requires_grad=True), 'n': 1, 'l': [1, 2], 'x': [torch.zeros(1)], 'none': None}
    out = to_ndarray(item, np.float32)
    assert out['t'].dtype == out['n'].dtype == out['l'].dtype == np.float32
    assert out['x'][0].shape == (1,) and out['none'] is None
    assert to_list({'t': torch.ones(2), 'a': np.arange(2), 's': torch.tensor(3), 'n': 4, 'none': None}) == {
        't': [1.0, 1.0],
        'a': [0, 1],
        's': 3,
        'n': 4,
        'none': None,
    }
    array = np.ones(1)
    assert tensor_to_list((torch.ones(1), array))[1] is array


@pytest.mark.parametrize('function', [to_tensor, to_ndarray, to_list])
def test_what_cannot_be_converted_is_named(function):
    with pytest.raises(TypeError, match='object'):
        function([object()])


def test_tensor_data_is_a_copy_without_graph():
    x = torch.ones(2, requires_grad=True)
    out = get_tensor_data({'x': x * 2, 'y': None})
    assert not out['x'].requires_grad and out['y'] is None
    out['x'].zero_()
    assert x.sum().item() == 2.0


def test_same_shape():
    assert same_shape([torch.ones(2, 3), torch.zeros(2, 3)]) and same_shape([])
    assert not same_shape([torch.ones(2), torch.ones(3)])


def test_log_dict_holds_plain_values():
    log = build_log_buffer()
    log['loss'] = torch.tensor([2.0], requires_grad=True)
    log.update({'q': torch.ones(2), 'n': np.array(1)}, lr=0.1)
    assert isinstance(log, LogDict) and log == {'loss': 2.0, 'q': [1.0, 1.0], 'n': 1, 'lr': 0.1}


def test_fetcher_brings_everything_in_order_and_then_ends():
    fetcher = CudaFetcher(({'x': torch.tensor(i)} for i in range(10)), 'cpu', queue_size=2).run()
    assert [d['x'].item() for d in fetcher] == list(range(10))
    with pytest.raises(StopIteration):
        next(fetcher)
    fetcher.close()


def test_fetcher_hands_on_errors_and_stops_while_it_waits():
    def failing():
        yield torch.zeros(1)
        raise RuntimeError('disk')

    fetcher = CudaFetcher(failing(), 'cpu').run()
    next(fetcher)
    with pytest.raises(RuntimeError, match='disk'):
        next(fetcher)
    endless = CudaFetcher(iter(lambda: torch.zeros(1), None), 'cpu', queue_size=1).run()
    next(endless)
    endless.close()
    endless.close()
    assert not endless._thread.is_alive()
