"""
Exported policies, see ``nervex export``: loaded and run, without torch. A ``.npz`` needs NumPy alone.

    policy = nervex.runtime.load('policy.npz')
    action, state = policy.act(obs)
"""

from __future__ import annotations

import io
import json
import math
import operator
import os
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nervex.utils.errors import CheckpointError, ExtraMissingError, NothingThereError

ENDINGS = ('.onnx', '.pt2', '.npz')
FORMAT = 1  # of what files say of themselves, and of the program in a .npz
Run = Callable[[list[np.ndarray]], Sequence[np.ndarray]]


class Exported:
    """
    Overview:
        A policy from a file. ``act`` remembers nothing; ``predict`` keeps the memory of a recurrent policy between
        calls, as ``Agent.predict`` does.
    Arguments:
        - path (:obj:`str`): the file, for messages
        - about (:obj:`dict`): what it says of itself: ``policy``, ``env``, ``inputs``, ``outputs``, ...
        - run (:obj:`Callable`): arrays of its inputs -> arrays of its outputs
    Interfaces:
        act, predict, reset, about
    """

    def __init__(self, path: str, about: dict[str, Any], run: Run) -> None:
        self.path, self.about, self._run = path, about, run
        self._memory: Any = None
        named = [(part['name'], tuple(part['shape']), np.dtype(part['dtype'])) for part in about['inputs']]
        self._state_shape = named.pop()[1] if named[-1][0] == 'state' else None
        self._leaves = [(name.split('.')[1:], shape, dtype) for name, shape, dtype in named]
        self._tuple = about['tuple']

    def act(self, obs: Any, state: np.ndarray | None = None) -> tuple[Any, np.ndarray | None]:
        """
        Overview:
            The greedy action for one observation as the env gives it, or for each of a batch with one more axis in
            front (of each part, where observations are dicts or tuples).
        Arguments:
            - state (:obj:`np.ndarray | None`): of a recurrent policy, as the call before answered it; None: an episode
              begins
        Returns:
            - action, state: what the env takes, and what the next call gets; None of a policy without a memory
        """
        inputs, lead = [], None
        for path, shape, dtype in self._leaves:
            part, name = obs, '.'.join(('obs', *path))
            try:
                for key in path:
                    part = part[int(key) if isinstance(part, (tuple, list)) else key]
                array = np.asarray(part, dtype)
            except (TypeError, ValueError, LookupError) as error:
                raise self._misfit(name, f'a {type(part).__name__} ({error!r})', shape) from error
            front = array.shape[: array.ndim - len(shape)]
            if array.shape[len(front) :] != shape or len(front) > 1 or lead not in (None, front):
                raise self._misfit(name, f'the shape {array.shape}', shape)
            lead = front
            inputs.append(array if front else array[None])
        if self._state_shape is not None:
            rows = (len(inputs[0]), *self._state_shape)
            given = np.zeros(rows, np.float32) if state is None else np.asarray(state, np.float32)
            if given.size != np.prod(rows):
                raise self._misfit('state', f'the shape {given.shape}', self._state_shape)
            inputs.append(given.reshape(rows))
        action: Any
        action, *after = self._run(inputs)
        if not lead:
            action = action[0]
        if self._tuple:
            action = tuple(action.tolist()) if not lead else [tuple(row) for row in action.tolist()]
        return action, (after[0] if lead else after[0][0]) if after else None

    def predict(self, obs: Any) -> Any:
        """The action alone; what a recurrent policy remembers is kept until ``reset``."""
        action, self._memory = self.act(obs, self._memory)
        return action

    def reset(self) -> None:
        """Episodes begin anew: a recurrent policy forgets."""
        self._memory = None

    def _misfit(self, name: str, got: str, shape: tuple[int, ...]) -> ValueError:
        return ValueError(f'{name}: got {got}, must be {shape}, or a batch of such in all parts; {self!r}')

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f'{name}: an exported policy only acts (act, predict, reset); load the run for more')

    def __repr__(self) -> str:
        return f'Exported({self.path}: {self.about["policy"]} for {self.about["env"]})'


def load(path: str | os.PathLike[str]) -> Exported:
    """
    Overview:
        A policy that ``nervex export`` wrote: a ``.npz``, or, with onnxruntime a ``.onnx``, with torch a ``.pt2``.
        Nothing in a ``.npz`` or ``.onnx`` is code.
    """
    path = os.fspath(path)
    ending = os.path.splitext(path)[1]
    if ending not in ENDINGS:
        raise NothingThereError(f'{path}: must end in one of {", ".join(ENDINGS)}, as nervex export writes them')
    if not os.path.isfile(path):
        raise NothingThereError(f'{path}: no such file')
    try:
        text, run = {'.npz': _from_npz, '.onnx': _from_onnx, '.pt2': _from_pt2}[ending](path)
        about = json.loads(text)
        if about['format'] > FORMAT:
            raise CheckpointError(f'{path}: has format {about["format"]}, this nervex reads up to {FORMAT}; update it')
        return Exported(path, about, run)
    except (CheckpointError, ExtraMissingError, MemoryError):
        raise
    except Exception as e:  # a damaged file may raise anything on the way
        text = ' '.join(f'{type(e).__name__}: {e}'.split())
        raise CheckpointError(f'{path}: is damaged, or no file of nervex export ({text:.200})') from e


def _from_onnx(path: str) -> tuple[str, Run]:
    try:
        import onnxruntime
    except ModuleNotFoundError as e:
        raise ExtraMissingError(f'{path}: needs the package onnxruntime: pip install nervex[export]') from e
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3  # more threads only cost such small nets time
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    names = [given.name for given in session.get_inputs()]
    return session.get_modelmeta().custom_metadata_map['nervex'], lambda arrays: session.run(
        None, dict(zip(names, arrays))
    )


def _from_pt2(path: str) -> tuple[str, Run]:
    import torch

    more = {'nervex': ''}
    module = torch.export.load(path, extra_files=more).module()

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        with torch.no_grad():
            return [x.numpy() for x in module(*[torch.from_numpy(np.ascontiguousarray(x)) for x in arrays])]

    return more['nervex'], run


# ---- .npz: a program of NumPy calls
def _from_npz(path: str) -> tuple[str, Run]:
    with zipfile.ZipFile(path) as archive:  # which compares parts that are read as a whole with their checksums
        program = json.loads(archive.read('program.json'))
        files = (io.BytesIO(archive.read(f'{k}.npy')) for k in range(program['arrays']))
        arrays = [np.lib.format.read_array(file, allow_pickle=False) for file in files]
        return archive.read('about.json').decode(), compiled(program, arrays)


def compiled(program: dict[str, Any], arrays: Sequence[np.ndarray]) -> Run:
    """
    Overview:
        What runs a program: a list of steps, each the name of an operation in ``OPERATIONS`` and its arguments. A value
        is named ``{'value': k}``: first come the inputs, then the arrays, then what each step gives.
    Arguments:
        - program (:obj:`dict`): ``inputs`` and ``arrays``, how many there are; ``steps``; ``outputs``, places of values
    """
    values: list[Any] = [None] * program['inputs'] + list(arrays)
    steps: list[tuple[Callable[..., Any], list[int], int]] = []

    def place(item: Any) -> int:
        if isinstance(item, dict):
            return item['value']
        if isinstance(item, list) and any(isinstance(part, dict) for part in item):
            inner = [place(part) for part in item]
            values.append(None)
            steps.append((lambda *parts: parts, inner, len(values) - 1))
        else:
            values.append(item)
        return len(values) - 1

    made = len(values)
    values += [None] * len(program['steps'])
    for k, (name, arguments) in enumerate(program['steps']):
        if name not in OPERATIONS:
            raise CheckpointError(f"operation '{name}' is not known here; this nervex is older than the file")
        places = [place(argument) for argument in arguments]
        steps.append((OPERATIONS[name], places, made + k))
    outputs, count = [item['value'] for item in program['outputs']], program['inputs']

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        now = values.copy()
        now[:count] = inputs
        for function, places, out in steps:
            now[out] = function(*[now[i] for i in places])
        return [now[i] for i in outputs]

    return run


def _addmm(bias: Any, a: np.ndarray, b: np.ndarray, beta: float = 1, alpha: float = 1) -> np.ndarray:
    product = a.dot(b)
    if alpha != 1:
        product *= product.dtype.type(alpha)
    if beta != 1:
        bias = bias * bias.dtype.type(beta)
    return product + bias


def _scaled(function: Any) -> Callable[..., Any]:
    """torch's ``add(a, b, alpha)``: b is multiplied first."""
    return lambda a, b, alpha=1: function(a, b if alpha == 1 else b * alpha)


def _var(x: np.ndarray, dim: Any = None, correction: Any = 1, keep: bool = False) -> np.ndarray:
    return x.var(_axes(dim), ddof=1 if correction is None else correction, keepdims=keep)


def _clamp(x: np.ndarray, low: Any = None, high: Any = None) -> np.ndarray:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _softmax(x: np.ndarray, dim: int, _: Any = None) -> np.ndarray:
    grown = np.exp(x - x.max(dim, keepdims=True))
    return grown / grown.sum(dim, keepdims=True)


def _axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, (list, tuple)) and len(dim) else dim if isinstance(dim, int) else None


def _reduced(function: Any) -> Callable[..., Any]:
    """torch's ``sum(x, dim, keepdim)``."""

    def reduced(x: np.ndarray, dim: Any = None, keep: bool = False, dtype: Any = None) -> np.ndarray:
        return function(x, axis=_axes(dim), keepdims=keep)

    return reduced


def _slice(x: np.ndarray, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> np.ndarray:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _select(x: np.ndarray, dim: int, index: int) -> np.ndarray:
    return x[(slice(None),) * (dim % x.ndim) + (index,)]


def _split(x: np.ndarray, sizes: Any, dim: int = 0) -> list[np.ndarray]:
    total = x.shape[dim]
    sizes = [sizes] * -(-total // sizes) if isinstance(sizes, int) else sizes
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def _expand(x: np.ndarray, sizes: Sequence[int], _: Any = None) -> np.ndarray:
    lead = len(sizes) - x.ndim
    return np.broadcast_to(x, [x.shape[k - lead] if size == -1 else size for k, size in enumerate(sizes)])


def _layer_norm(x: np.ndarray, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> tuple[np.ndarray, ...]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(axes, keepdims=True)
    rest = x - mean
    scale = 1 / np.sqrt((rest * rest).mean(axes, keepdims=True) + x.dtype.type(eps))
    out = rest * scale
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, scale


def _batch_norm(
    x: np.ndarray, weight: Any, bias: Any, mean: np.ndarray, var: np.ndarray, momentum: float, eps: float
) -> tuple[np.ndarray, ...]:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    scale = 1 / np.sqrt(var + x.dtype.type(eps))
    out = (x - mean.reshape(shape)) * scale.reshape(shape)
    out = out if weight is None else out * weight.reshape(shape)
    return (out if bias is None else out + bias.reshape(shape)), mean, scale


def _windows(x: np.ndarray, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any, fill: float) -> np.ndarray:
    """What a kernel sees at each place of pictures (B, C, *): (B, C, places, kernel)."""
    if any(padding):
        x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)), constant_values=fill)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, x.ndim)))
    cut = (slice(None), slice(None), *(slice(None, None, step) for step in (*stride, *dilation)))
    return windows[cut]


def _convolution(
    x: np.ndarray,
    weight: np.ndarray,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> np.ndarray:
    count = x.ndim - 2
    windows = _windows(x, weight.shape[2:], stride, padding, dilation, 0)
    parts = []
    for seen, kernels in zip(np.split(windows, groups, 1), np.split(weight, groups)):
        axes = ((1, *range(2 + count, 2 + 2 * count)), tuple(range(1, 2 + count)))
        parts.append(np.moveaxis(np.tensordot(seen, kernels, axes), -1, 1))
    out = parts[0] if groups == 1 else np.concatenate(parts, 1)
    return out if bias is None else out + bias.reshape(-1, *[1] * count)


def _max_pool(
    x: np.ndarray, kernel: Any, stride: Any = (), padding: Any = (0, 0), dilation: Any = (1, 1), ceil: bool = False
) -> list[np.ndarray]:
    if ceil:
        raise ValueError('a max pool with ceil_mode=True is not known here')
    return [_windows(x, kernel, stride or kernel, padding, dilation, -np.inf).max((-2, -1))]


def _gather(x: np.ndarray, dim: int, index: np.ndarray, sparse: bool = False) -> np.ndarray:
    if x.ndim and any(n != m for k, (n, m) in enumerate(zip(x.shape, index.shape)) if k != dim % x.ndim):
        x = x[tuple(slice(None) if k == dim % x.ndim else slice(m) for k, m in enumerate(index.shape))]
    return np.take_along_axis(x, index, dim)


def _scatter(x: np.ndarray, dim: int, index: np.ndarray, source: Any, reduce: Any = None) -> np.ndarray:
    out = x.copy()
    np.put_along_axis(out, index, source, dim)
    return out


def _sort(x: np.ndarray, dim: int = -1, descending: bool = False) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-x if descending else x, dim, kind='stable')
    return np.take_along_axis(x, order, dim), order


def _topk(x: np.ndarray, k: int, dim: int = -1, largest: bool = True, _: bool = True) -> tuple[np.ndarray, np.ndarray]:
    values, order = _sort(x, dim, largest)
    return _slice(values, dim, 0, k), _slice(order, dim, 0, k)


def _index(x: np.ndarray, indices: Sequence[Any]) -> np.ndarray:
    return x[tuple(slice(None) if part is None else part for part in indices)]


def _full(size: Sequence[int], value: Any, dtype: str | None = None) -> np.ndarray:
    return np.full(size, value, dtype or (np.float32 if isinstance(value, float) else None))


def _arange(start: Any, end: Any, step: Any = 1, dtype: Any = None) -> np.ndarray:
    return np.arange(start, end, step, dtype=dtype)


def _extreme(function: Any, where: Any) -> Callable[..., Any]:
    """torch's ``max(x, dim)``: values and places."""
    return lambda x, dim, keep=False: (function(x, axis=dim, keepdims=keep), where(x, axis=dim, keepdims=keep))


def _same(x: np.ndarray, *_: Any) -> np.ndarray:
    return x


def _sigmoid(x: np.ndarray) -> np.ndarray:
    half = x.dtype.type(0.5)
    return np.tanh(x * half) * half + half


def _leaky(x: np.ndarray, slope: float = 0.01) -> np.ndarray:
    return np.where(x > 0, x, x * x.dtype.type(slope))


def _elu(x: np.ndarray, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> np.ndarray:
    kind = x.dtype.type
    return np.where(x > 0, x * kind(scale), np.expm1(np.minimum(x, 0) * kind(input_scale)) * kind(alpha * scale))


def _gelu(x: np.ndarray, approximate: str = 'none') -> np.ndarray:
    if approximate == 'tanh':
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * (0.5 * (1 + np.vectorize(math.erf, [np.float64])(x / math.sqrt(2)))).astype(x.dtype)


def _divided(a: Any, b: Any, rounding: str | None = None) -> np.ndarray:
    if rounding is None:
        return a / b
    return np.floor_divide(a, b) if rounding == 'floor' else np.trunc(a / b)


#: what a program may do: torch's core operations by their names in ATen, and Python's on sizes
OPERATIONS: dict[str, Callable[..., Any]] = {
    'python.getitem': operator.getitem,
    'python.mul': operator.mul,
    'addmm': _addmm,
    'mm': lambda a, b: a.dot(b),
    'bmm': np.matmul,
    'convolution': _convolution,
    'max_pool2d_with_indices': _max_pool,
    'add': _scaled(np.add),
    'sub': _scaled(np.subtract),
    'mul': np.multiply,
    'div': _divided,
    'neg': np.negative,
    'abs': np.abs,
    'exp': np.exp,
    'log': np.log,
    'log1p': np.log1p,
    'sqrt': np.sqrt,
    'rsqrt': lambda x: 1 / np.sqrt(x),
    'pow': np.power,
    'cos': np.cos,
    'sin': np.sin,
    'tanh': np.tanh,
    'sigmoid': _sigmoid,
    'relu': lambda x: np.maximum(x, 0),
    'leaky_relu': _leaky,
    'elu': _elu,
    'maximum': np.maximum,
    'minimum': np.minimum,
    'clamp': _clamp,
    'hardtanh': lambda x, low=-1.0, high=1.0: _clamp(x, low, high),
    'sign': np.sign,
    'floor': np.floor,
    'round': np.round,
    'reciprocal': np.reciprocal,
    'eq': np.equal,
    'ne': np.not_equal,
    'lt': np.less,
    'le': np.less_equal,
    'gt': np.greater,
    'ge': np.greater_equal,
    'bitwise_and': np.bitwise_and,
    'bitwise_or': np.bitwise_or,
    'bitwise_not': np.invert,
    'logical_and': np.logical_and,
    'logical_xor': np.logical_xor,
    'logical_not': np.logical_not,
    'where': np.where,
    '_softmax': _softmax,
    '_log_softmax': lambda x, dim, _=None: np.log(_softmax(x, dim)),
    'native_layer_norm': _layer_norm,
    '_native_batch_norm_legit_no_training': _batch_norm,
    'sum': _reduced(np.sum),
    'mean': _reduced(np.mean),
    'var': _var,
    'amax': _reduced(np.max),
    'amin': _reduced(np.min),
    'any': _reduced(np.any),
    'max': _extreme(np.max, np.argmax),
    'min': _extreme(np.min, np.argmin),
    'argmax': lambda x, dim=None, keep=False: x.argmax(dim, keepdims=keep),
    'argmin': lambda x, dim=None, keep=False: x.argmin(dim, keepdims=keep),
    'sort': _sort,
    'topk': _topk,
    'cumsum': lambda x, dim, dtype=None: np.cumsum(x, dim),
    'gather': _gather,
    'scatter': _scatter,
    'index': _index,
    'index_select': lambda x, dim, index: np.take(x, index, dim),
    'embedding': lambda weight, index, *_: weight[index],
    'cat': lambda parts, dim=0: np.concatenate(parts, dim),
    'split_with_sizes': _split,
    'view': lambda x, sizes: x.reshape(sizes),
    'permute': lambda x, order: x.transpose(order),
    'unsqueeze': lambda x, dim: np.expand_dims(x, dim),
    'squeeze': lambda x, dim: x.squeeze(tuple(k for k in np.atleast_1d(dim) if x.shape[k] == 1)),
    'expand': _expand,
    'repeat': np.tile,
    'slice': _slice,
    'select': _select,
    'flip': lambda x, dims: np.flip(x, dims),
    'full': _full,
    'full_like': lambda x, value, dtype=None: np.full_like(x, value, dtype),
    'arange': _arange,
    '_to_copy': lambda x, dtype=None: x if dtype is None else x.astype(dtype),
    'clone': _same,
    'alias': _same,
    'gelu': _gelu,
    'sym_size': lambda x, dim: x.shape[dim],
}
