"""A program as calls of the operations of ``nervex.runtime`` on the same weights: acting for a few rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.graph.program import Call, NoFormError, Program, Ref, TraceError
from nervex.graph.recording import Run, Source
from nervex.runtime import OPERATIONS
from nervex.utils import tree

#: those of ``OPERATIONS`` that are quicker for a few rows than torch, whose results agree with it to the last digit
_TAKEN = '_softmax _to_copy abs clone exp expand log maximum minimum mul neg permute select slice sqrt tanh'
_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: OPERATIONS[name] for name in _TAKEN.split()},
    'add': np.add,
    'sub': np.subtract,
    'div': np.divide,
    'rsub': lambda x, other: other - x,
    't': np.transpose,
    'transpose': np.swapaxes,
    'getitem': lambda parts, k: parts[k],
    **dict.fromkeys(
        ('split', 'unsafe_split', 'split_with_sizes', 'unsafe_split_with_sizes'), OPERATIONS['split_with_sizes']
    ),
}
_SHAPES = ('view', '_unsafe_view', 'unsqueeze', 'squeeze')


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
        A function of arrays that returns arrays. Weights are views of the tensors' memory and so always current. Most
        results have a buffer of their own, whose views are made in advance; outputs are copied. Only operators of a
        white list are known; any other raises NoFormError with its name.
    Arguments:
        - structure (:obj:`Any`): the results in their containers
    """
    if any(call.is_random for call in program.calls):
        raise TraceError('it draws random numbers')
    if any(ref.example.device.type != 'cpu' for ref in [*program.constants, *program.inputs]):
        raise TraceError('NumPy works on the CPU only')
    writer = _Writer(program)
    for call in program.calls:
        try:
            writer.call(call)
        except (TypeError, ValueError, LookupError) as e:
            raise NoFormError(f"there is no NumPy form of '{call.name}' with these arguments: {e}") from e
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


class _Value:
    """What a Ref is when the source runs: ``text`` is '' where that is the same array at every run, filled anew."""

    def __init__(self, now: Any, text: str = '') -> None:
        self.now, self.text = now, text  # an array, or several of a split


class _Writer:
    """Writes one operator after the other as a line of source, or as none where a view can be made in advance."""

    def __init__(self, program: Program) -> None:
        self.source = Source(program.inputs)
        self._values = {
            id(ref): _Value(np.zeros(tuple(ref.example.shape), _dtype(ref)), self.source.name(ref))
            for ref in program.inputs
        }

    def call(self, call: Call) -> None:
        """The line of one operator. One that works in place gets a buffer all the same."""
        name, given = call.name.rstrip('_'), call.in_order()
        operands = tree.map(lambda x: self._value(x) if isinstance(x, Ref) else x, given)
        function = _OPERATIONS.get(name)
        if name in ('mm', 'addmm') and len(given) == 2 + (name == 'addmm'):
            found = self._product(*operands[-2:])
            found = self._ufunc(call, np.add, [found, operands[0]]) if name == 'addmm' else found
        elif name in ('cat', 'stack'):
            parts, dim = (*operands, 0)[:2]
            if name == 'stack':
                parts = [self._any(lambda x: np.expand_dims(x, dim), [part]) for part in parts]
            found = self._joined(parts, dim)
        elif name == 'relu':
            found = self._ufunc(call, np.maximum, [*operands, 0])
        elif name == 'sigmoid':  # by the hyperbolic tangent, which does not overflow
            risen = self._ufunc(call, np.tanh, [self._ufunc(call, np.multiply, [0.5, *operands])])
            found = self._ufunc(call, np.multiply, [0.5, self._ufunc(call, np.add, [risen, 1])])
        elif name == 'clamp':
            found, *bounds = operands
            for function, bound in zip((np.maximum, np.minimum), bounds):
                found = found if bound is None else self._ufunc(call, function, [found, bound])
        elif name in ('sum', 'mean') and len(given) > 1:
            found = self._sum(*operands)
            if name == 'mean':
                found = self._ufunc(call, np.divide, [found, operands[0].now.size // max(found.now.size, 1)])
        elif isinstance(function, np.ufunc) and len(given) == function.nin:
            found = self._ufunc(call, function, operands)
        elif name in _SHAPES:
            found = self._any(lambda x, shape=tuple(call.result.example.shape): x.reshape(shape), operands[:1])
        elif function is not None and not isinstance(function, np.ufunc):
            found = self._any(function, operands)
        else:
            raise NoFormError(f"there is no NumPy form of '{call.name}', or none with these arguments")
        if isinstance(wanted := call.result.example, torch.Tensor):
            kinds = found.now.dtype, found.now.shape
            if kinds != (_dtype(call.result), wanted.shape):
                raise TraceError(f"for '{call.name}' NumPy gives {kinds}, torch {wanted.dtype} {tuple(wanted.shape)}")
        self._values[id(call.result)] = found

    def output(self, ref: Ref) -> str:
        """Source text of a result."""
        value = self._value(ref)
        return value.text if value.text.startswith('x') else f'{self._text(value)}.copy()'

    def _value(self, ref: Ref) -> _Value:
        return self._values[id(ref)] if ref.tensor is None else _Value(ref.tensor.numpy())

    def _text(self, item: Any) -> str:
        """Source text of an operand: a value, something else as a constant, or a list of them."""
        if isinstance(item, _Value):
            return item.text or self.source.constant(item.now)
        if isinstance(item, (list, tuple)):
            return f'[{", ".join(map(self._text, item))}]'
        return repr(item) if isinstance(item, (int, type(None))) else self.source.constant(item)

    # ---- lines
    def _ufunc(self, call: Call, function: np.ufunc, items: list[Any]) -> _Value:
        """A ufunc of values or numbers, into a buffer."""
        numbers = _dtype(call.result)
        values = [_Value(x.now, x.text) if isinstance(x, _Value) else _Value(np.array(x, numbers)) for x in items]
        with np.errstate(all='ignore'):
            buffer = np.zeros_like(np.asarray(function(*(value.now for value in values))))
        for value in values:  # one that need not be stretched, or has no axes, is taken three times as fast
            if not value.text and value.now.size in (1, buffer.size) and buffer.size:
                fitted = value.now.reshape(() if value.now.size < buffer.size else buffer.shape)
                value.now = fitted if np.may_share_memory(fitted, value.now) else value.now
        out = 'out=' if function in (np.maximum, np.minimum) else ''  # which take no third argument otherwise
        texts = ', '.join(map(self._text, values))
        self.source.line(f'{self.source.constant(function)}({texts}, {out}{self.source.constant(buffer)})')
        return _Value(buffer)

    def _product(self, a: _Value, b: _Value) -> _Value:
        """A product of matrices: the method is quicker than the function, and than ``matmul``."""
        buffer = np.zeros((len(a.now), b.now.shape[1]), a.now.dtype)
        self.source.line(f'{self._text(a)}.dot({self._text(b)}, {self.source.constant(buffer)})')
        return _Value(buffer)

    def _sum(self, x: _Value, dim: Any, keep: Any = False, dtype: Any = None) -> _Value:
        """Along axes. The product with two ones is the sum of two numbers, four times as fast."""
        axes = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
        if keep and x.now.shape[1:] == (2,) and axes in ((-1,), (1,)):
            return self._product(x, _Value(np.ones((2, 1), x.now.dtype)))
        buffer = np.zeros_like(np.add.reduce(x.now, axes, keepdims=keep))
        add, out = self.source.constant(np.add.reduce), self.source.constant(buffer)
        self.source.line(f'{add}({self._text(x)}, {axes}, None, {out}, {keep})')
        return _Value(buffer)

    def _joined(self, parts: list[_Value], dim: int) -> _Value:
        """One behind the other."""
        buffer = np.concatenate([part.now for part in parts], dim)
        join, out = self.source.constant(np.concatenate), self.source.constant(buffer)
        self.source.line(f'{join}({self._text(parts)}, {dim}, {out})')
        return _Value(buffer)

    def _any(self, function: Callable, operands: list[Any]) -> _Value:
        """Any function; its result is a view that is made now (of what is copied for it, where need be), or new."""
        values = [x for x in tree.leaves(operands) if isinstance(x, _Value)]
        found = function(*tree.map(lambda x: x.now if isinstance(x, _Value) else x, operands))
        arrays = tree.leaves([x.now for x in values])
        seen = all(any(np.may_share_memory(part, array) for array in arrays) for part in tree.leaves(found))
        if seen:
            for x in values:
                if x.text:
                    x.now = np.zeros_like(x.now)
                    self.source.line(f'{self.source.constant(x.now)}[...] = {x.text}')
                    x.text = ''
            return _Value(function(*tree.map(lambda x: x.now if isinstance(x, _Value) else x, operands)))
        text = f'v{len(self.source.lines)}'
        self.source.line(f'{text} = {self.source.constant(function)}({", ".join(map(self._text, operands))})')
        return _Value(found, text)


def _dtype(ref: Ref) -> np.dtype:
    """The dtype of a value in NumPy."""
    try:
        return ref.example.detach().numpy().dtype
    except TypeError as e:
        raise NoFormError(f'NumPy has no {ref.example.dtype}') from e
