"""A program as NumPy calls on the same weights: acting for a few rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.graph.program import Call, Program, Ref, TraceError
from nervex.graph.recording import Run, Source
from nervex.utils import tree

_UFUNCS = {
    'tanh': np.tanh,
    'exp': np.exp,
    'neg': np.negative,
    'abs': np.abs,
    'sqrt': np.sqrt,
    'log': np.log,
    'add': np.add,
    'sub': np.subtract,
    'mul': np.multiply,
    'div': np.divide,
    'maximum': np.maximum,
    'minimum': np.minimum,
}
_SPLITS = ('split', 'split_with_sizes', 'chunk', 'unsafe_split', 'unsafe_chunk')


def _cut(x: np.ndarray, dim: int, part: Any) -> np.ndarray:
    return x[(slice(None),) * (dim % x.ndim) + (part,)]


def _slice(x: np.ndarray, call: Call) -> np.ndarray:
    dim, start, end, step = call.args[1:] + (0, None, None, 1)[len(call.args) - 1 :]
    return _cut(x, dim, slice(start, end, step))


def _shaped(x: np.ndarray, call: Call) -> np.ndarray:
    return x.reshape(tuple(call.result.example.shape))


_VIEWS: dict[str, Callable[[np.ndarray, Call], np.ndarray]] = {
    't': lambda x, call: x.T,
    'transpose': lambda x, call: x.swapaxes(*call.args[1:]),
    'permute': lambda x, call: x.transpose(call.args[1]),
    'expand': lambda x, call: np.broadcast_to(x, tuple(call.result.example.shape)),
    'select': lambda x, call: _cut(x, *call.args[1:]),
    'slice': _slice,
    **dict.fromkeys(('view', '_unsafe_view', 'reshape', 'unsqueeze', 'squeeze', 'flatten'), _shaped),
}


def forward_step(module: nn.Module) -> tuple[Callable[[Any], list[torch.Tensor]], list[Any]]:
    """What is recorded of acting: a function of the data that gives tensors; the list holds them nested."""
    results: list[Any] = []

    def step(data: Any) -> list[torch.Tensor]:
        results[:] = [module(data)]
        outputs = [x for x in tree.leaves(results[0]) if x is not None]
        if not all(isinstance(x, torch.Tensor) for x in outputs):
            raise TraceError('one of its results is no tensor and would be frozen')
        return outputs

    return step, results


def compile_numpy(program: Program, structure: Any) -> Run:
    """
    Overview:
        A function of arrays that returns arrays. Weights are views of the tensors' memory and so always current. Each
        result has a buffer of its own, whose views are made in advance; outputs are copied. Only operators of a white
        list are known; any other raises TraceError with its name.
    Arguments:
        - structure (:obj:`Any`): the results in their containers
    """
    if any(call.is_random for call in program.calls):
        raise TraceError('it draws random numbers')
    if any(ref.example.device.type != 'cpu' for ref in [*program.constants, *program.inputs]):
        raise TraceError('NumPy works on the CPU only')
    writer = _Writer(program)
    for call in program.calls:
        writer.call(call)
    outputs = map(writer.output, program.outputs)
    return writer.source.finish(_nested(structure, outputs), '<recorded acting>')


def _nested(part: Any, outputs: Iterator[str]) -> str:
    """Source text of results in their containers, each with the next of the outputs' texts."""
    if isinstance(part, dict):
        if not all(isinstance(key, (str, int)) for key in part):
            raise TraceError(f'one of its results has keys that are no text: {list(part)}')
        return f'{{{", ".join(f"{key!r}: {_nested(x, outputs)}" for key, x in part.items())}}}'
    if isinstance(part, (list, tuple)):
        inner = ''.join(f'{_nested(x, outputs)}, ' for x in part)
        return f'[{inner}]' if isinstance(part, list) else f'({inner})'
    return 'None' if part is None else next(outputs)


class _Writer:
    """Writes one operator after the other; every value has an array, and a line of source fills it."""

    def __init__(self, program: Program) -> None:
        self.source = Source(program.inputs)
        self._arrays = {id(ref): np.zeros(tuple(ref.example.shape), _dtype(ref)) for ref in program.inputs}
        self._held = list(self._arrays.values())  # their ids belong to nobody else as long as they live
        self._inputs = {id(self._arrays[id(ref)]): self.source.name(ref) for ref in program.inputs}
        self._splits = {id(call.result): call for call in program.calls if call.name in _SPLITS}

    def call(self, call: Call) -> None:
        """One operator as one or a few lines of source, or none where a view can be made in advance."""
        name = call.name.rstrip('_')  # one that works in place gets a buffer all the same
        if name in _SPLITS:
            return
        if name in _UFUNCS and not call.kwargs and len(call.args) == _UFUNCS[name].nin:
            found = self.apply(call, _UFUNCS[name], *call.args)
        elif (name, len(call.args)) in _PLAIN and not call.kwargs:
            found = _PLAIN[name, len(call.args)](self, call)
        elif name in _VIEWS:
            found = self._view(call.args[0], lambda x: _VIEWS[name](x, call))
        elif name in _OTHERS:
            found = _OTHERS[name](self, call)
        else:
            raise _no_form(call)
        wanted = call.result.example
        if found.shape != tuple(wanted.shape) or found.dtype != _dtype(call.result):
            kinds = f'{found.dtype} {found.shape}, torch {wanted.dtype} {tuple(wanted.shape)}'
            raise TraceError(f"for '{call.name}' NumPy gives {kinds}")
        self._arrays[id(call.result)] = found

    def output(self, ref: Ref) -> str:
        """Source text of a result."""
        array = self._array(ref)
        return self._inputs.get(id(array)) or f'{self.source.constant(array)}.copy()'

    # ---- values ----
    def _array(self, item: Any, call: Call | None = None) -> np.ndarray:
        """The array of a value, of a weight, or of a number among the operands of a call."""
        if isinstance(item, np.ndarray):
            return item
        if not isinstance(item, Ref):
            return np.array(item, _dtype(call.result) if call else None)
        if item.tensor is not None:
            self._arrays.setdefault(id(item), item.tensor.numpy())
        return self._arrays[id(item)]

    def _text(self, array: np.ndarray, size: int = 0, shape: tuple[int, ...] = ()) -> str:
        """
        Overview:
            Source text of an array as an operand of a ufunc whose result has this shape. One that has the same shape,
            or no axes, is taken three times as fast as one that has to be stretched.
        """
        if id(array) in self._inputs:
            return self._inputs[id(array)]
        fitted = array.reshape(() if array.size == 1 < size else shape) if size and array.size in (1, size) else array
        return self.source.constant(fitted if np.may_share_memory(fitted, array) else array)

    # ---- lines ----
    def _line(self, function: Any, arguments: str, buffer: np.ndarray, out: str = '', more: str = '') -> np.ndarray:
        self.source.line(f'{self.source.constant(function)}({arguments}, {out}{self.source.constant(buffer)}{more})')
        return buffer

    def apply(self, call: Call, function: np.ufunc, *items: Any) -> np.ndarray:
        """A ufunc of values, arrays or numbers."""
        arrays = [self._array(item, call) for item in items]
        with np.errstate(all='ignore'):
            found = np.asarray(function(*arrays))
        texts = ', '.join(self._text(array, found.size, found.shape) for array in arrays)
        out = 'out=' if function in (np.maximum, np.minimum) else ''  # which take no third argument otherwise
        return self._line(function, texts, np.zeros_like(found), out)

    def _reduce(self, function: np.ufunc, item: Any, axes: Any, keep: bool = False) -> np.ndarray:
        """A ufunc along axes. The product with two ones is the sum of two numbers, four times as fast."""
        array, axes = self._array(item), tuple(axes) if isinstance(axes, (list, tuple)) else (axes,)
        if function is np.add and keep and array.shape[1:] == (2,) and axes in ((-1,), (1,)):
            return self.product(array, np.ones((2, 1), array.dtype))
        buffer = np.zeros_like(function.reduce(array, axes, keepdims=keep))
        return self._line(function.reduce, f'{self._text(array)}, {axes}, None', buffer, more=f', {keep}')

    def _copy(self, array: np.ndarray, dtype: Any = None) -> np.ndarray:
        """The numbers of an array in a buffer of their own."""
        buffer = np.zeros(array.shape, dtype or array.dtype)
        self.source.line(f'{self.source.constant(buffer)}[...] = {self._text(array)}')
        return buffer

    def product(self, a: Any, b: Any) -> np.ndarray:
        """A product of matrices: the method is quicker than the function, and than ``matmul``."""
        left, right = self._array(a), self._array(b)
        buffer = np.zeros((left.shape[0], right.shape[1]), left.dtype)
        self.source.line(f'{self._text(left)}.dot({self._text(right)}, {self.source.constant(buffer)})')
        return buffer

    def _view(self, item: Ref, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """
        Overview:
            A view, made now. An input, which is another array at each run, is copied first, and so is memory that
            cannot be seen in this shape.
        """
        array = self._array(item)
        if id(array) in self._inputs:
            array = self._arrays[id(item)] = self._copy(array)
        view = function(array)
        return view if np.may_share_memory(view, array) else function(self._copy(array))

    # ---- operators ----
    def getitem(self, call: Call) -> np.ndarray:
        """A part of a split: a slice at a fixed place."""
        split = self._splits[id(call.args[0])]
        dim = split.args[2] if len(split.args) > 2 else split.kwargs.get('dim', 0)
        end = sum(part.shape[dim] for part in split.result.example[: call.args[1] + 1])
        return self._view(split.args[0], lambda x: _cut(x, dim, slice(end - call.result.example.shape[dim], end)))

    def cat(self, call: Call) -> np.ndarray:
        """Values one behind the other, or as rows of a new axis."""
        axis = call.args[1] if len(call.args) > 1 else call.kwargs.get('dim', 0)
        parts = [self._array(part) for part in call.args[0]]
        if call.name == 'stack':
            parts = [self._view(part, lambda x: np.expand_dims(x, axis)) for part in call.args[0]]
        texts = ', '.join(self._text(part) for part in parts)
        return self._line(np.concatenate, f'({texts},), {axis}', np.zeros_like(np.concatenate(parts, axis)))

    def sigmoid(self, call: Call, x: Any) -> np.ndarray:
        """By the hyperbolic tangent, which does not overflow."""
        risen = self.apply(call, np.tanh, self.apply(call, np.multiply, 0.5, x))
        return self.apply(call, np.multiply, 0.5, self.apply(call, np.add, risen, 1))

    def clone(self, call: Call) -> np.ndarray:
        """A copy, perhaps of another dtype."""
        return self._copy(self._array(call.args[0]), _dtype(call.result))

    def clamp(self, call: Call) -> np.ndarray:
        """Between bounds that may be left out."""
        low, high = ([*call.args[1:], None, None])[:2]
        found = self._array(call.args[0])
        for function, bound in ((np.maximum, call.kwargs.get('min', low)), (np.minimum, call.kwargs.get('max', high))):
            found = found if bound is None else self.apply(call, function, found, bound)
        return found

    def sum(self, call: Call) -> np.ndarray:
        """Along axes."""
        if len(call.args) < 2 or call.kwargs:
            raise _no_form(call)
        return self._reduce(np.add, call.args[0], *call.args[1:])

    def mean(self, call: Call) -> np.ndarray:
        """Along axes."""
        total = self.sum(call)
        rows = self._array(call.args[0]).size // max(total.size, 1)  # there may be none
        return self.apply(call, np.divide, total, rows)

    def softmax(self, call: Call) -> np.ndarray:
        """Probabilities."""
        largest = self._reduce(np.maximum, call.args[0], call.args[1], True)
        powers = self.apply(call, np.exp, self.apply(call, np.subtract, call.args[0], largest))
        return self.apply(call, np.divide, powers, self._reduce(np.add, powers, call.args[1], True))


_PLAIN: dict[tuple[str, int], Callable[[_Writer, Call], np.ndarray]] = {  # name and number of arguments, none by name
    ('mm', 2): lambda to, call: to.product(*call.args),
    ('addmm', 3): lambda to, call: to.apply(call, np.add, to.product(*call.args[1:]), call.args[0]),
    ('rsub', 2): lambda to, call: to.apply(call, np.subtract, call.args[1], call.args[0]),
    ('relu', 1): lambda to, call: to.apply(call, np.maximum, call.args[0], 0),
    ('sigmoid', 1): lambda to, call: to.sigmoid(call, call.args[0]),
}


_OTHERS: dict[str, Callable[[_Writer, Call], np.ndarray]] = {
    'getitem': _Writer.getitem,
    'cat': _Writer.cat,
    'stack': _Writer.cat,
    'clone': _Writer.clone,
    '_to_copy': _Writer.clone,
    'clamp': _Writer.clamp,
    'sum': _Writer.sum,
    'mean': _Writer.mean,
    '_softmax': _Writer.softmax,
}


def _dtype(ref: Ref) -> np.dtype:
    """The dtype of a value in NumPy."""
    try:
        return ref.example.detach().numpy().dtype
    except TypeError as e:
        raise TraceError(f'NumPy has no {ref.example.dtype}') from e


def _no_form(call: Call) -> TraceError:
    return TraceError(f"there is no NumPy form of '{call.name}', or none with these arguments")
